/* The kinds of links, in the order in which they are listed. To add one, add a line: RFI_LINKS(name) stands for the
 * const rfi_link_kind rfi_links_name of src/graph/links/name.c. */
RFI_LINKS(static)
RFI_LINKS(failing)
RFI_LINKS(gossip)
