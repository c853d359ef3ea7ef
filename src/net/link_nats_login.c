/* How a connection trusts its broker, and the broker it: certificates, and a nonce signed with the key of the login. */
#include "net/keys.h"
#include "net/link_nats_inner.h"

#include <stdlib.h>
#include <string.h>

static natsStatus sign_nonce(char **problem, unsigned char **signature, int *length, const char *nonce, void *closure)
{
    const rfi_keys *login = closure;
    (void)problem;
    if (!rfi_is_nonce(nonce)) {
        return NATS_ERR; /* a broker that wants something else signed */
    }
    *signature = malloc(RFI_SIGNATURE_BYTES);
    if (!*signature) {
        return NATS_NO_MEMORY;
    }
    rfi_sign_login(*signature, login, nonce, strlen(nonce));
    *length = RFI_SIGNATURE_BYTES;
    return NATS_OK;
}

natsStatus rfi_nats_set_trust(natsOptions *o, const char *url, const char *authority, const rfi_keys *login)
{
    char user[RFI_KEY_TEXT];
    natsStatus s = NATS_OK;
    if (strncmp(url, "tls://", 6) == 0) {
        s = natsOptions_SetSecure(o, true);
        s = s == NATS_OK && authority ? natsOptions_LoadCATrustedCertificates(o, authority) : s;
    }
    if (s == NATS_OK && login) {
        rfi_key_print(user, RFI_LETTER_LOGIN, login->public_key);
        s = natsOptions_SetNKey(o, user, sign_nonce, (void *)(uintptr_t)login);
    }
    return s;
}
