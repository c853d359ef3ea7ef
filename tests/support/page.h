/* A page of the documentation, for tests that compare it with the code. */
#ifndef REEF_TESTS_PAGE_H
#define REEF_TESTS_PAGE_H

/* The text of docs/NAME, to be freed with test_page_free; NULL: it cannot be read. */
char *test_page_read(const char *name);
void test_page_free(char *page);

#endif
