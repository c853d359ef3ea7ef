/* Telling the service manager how a command is: one datagram to $NOTIFY_SOCKET, as sd_notify(3) describes it. Nothing happens where there is
 * none. For commands only, not for programs that have an agent inside. */
#ifndef RFI_NET_NOTIFY_H
#define RFI_NET_NOTIFY_H

/* "READY=1", "STOPPING=1". */
void rfi_notify(const char *state);
/* Says once a second that the command is alive, if the manager watches it. */
void rfi_notify_alive(double now);

#endif
