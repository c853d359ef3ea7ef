/* Ending cleanly. */
#include "signals.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

volatile sig_atomic_t stop_wanted;

static void on_signal(int number)
{
    (void)number;
    stop_wanted = 1;
}

void stop_on_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        struct sigaction action = {.sa_handler = on_signal};
        action.sa_flags = (int)SA_RESETHAND;
        if (sigaction(numbers[i], NULL, &before) != 0 || numbers[i] != SIGHUP || before.sa_handler != SIG_IGN) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
}

void prepare_process(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
    /* Reef has threads of its own; OpenBLAS, should it be loaded, reads this and starts none. */
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 1);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        if (fcntl(i, F_GETFD) < 0) { /* open takes the lowest number: this one */
            (void)open("/dev/null", i == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}
