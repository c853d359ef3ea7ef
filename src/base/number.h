/* Numbers in text, the same in every locale. */
#ifndef RFI_BASE_NUMBER_H
#define RFI_BASE_NUMBER_H

#include "base/text.h"

#include <stdint.h>

/* Longest number accepted, in characters. */
#define RFI_NUMBER_LENGTH_MAX 400

/* Reads all of `text` as a number in plain decimal notation ([+-]digits[.digits][e[+-]digits]), correctly rounded. False,
 * and *number untouched, for anything else: hex, inf, nan, blanks, nothing, or a value that overflows. */
bool rfi_read_real(rfi_slice text, double *number);

/* Reads all of `text` as 16 hexadecimal digits, small letters: a checksum as files have it. False for anything else. */
bool rfi_read_hex(rfi_slice text, uint64_t *number);

/* Room for any printed number. */
#define RFI_REAL_SIZE 40
/* Prints a finite number as the shortest decimal (6 to 17 digits) that reads back as the same double. */
void rfi_print_real(double number, char text[RFI_REAL_SIZE]);

#endif
