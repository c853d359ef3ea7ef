# What goes with the command: man pages by scdoc, if that is there, and completion for shells, made by the command itself.
add_custom_target(reef_extras ALL)
if(REEF_TOOLS)
  find_program(SCDOC scdoc)
  mark_as_advanced(SCDOC)
  file(GLOB reef_manual_sources CONFIGURE_DEPENDS docs/man/*.scd)
  set(reef_manual "")
  foreach(source IN LISTS reef_manual_sources)
    cmake_path(GET source STEM LAST_ONLY name)
    set(page ${PROJECT_BINARY_DIR}/man/${name})
    add_custom_command(OUTPUT ${page} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
                       COMMAND ${SCDOC} < ${source} > ${page} DEPENDS ${source} VERBATIM)
    list(APPEND reef_manual ${page})
  endforeach()
  if(SCDOC)
    add_custom_target(reef_manual DEPENDS ${reef_manual})
    add_dependencies(reef_extras reef_manual)
    install(FILES ${reef_manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
  endif()
endif()

if(REEF_TOOLS AND NOT CMAKE_CROSSCOMPILING)
  set(completion ${PROJECT_BINARY_DIR}/completion)
  file(MAKE_DIRECTORY ${completion})
  add_custom_command(OUTPUT ${completion}/reef.bash ${completion}/_reef ${completion}/reef.fish
                     COMMAND reef_tool completion bash > ${completion}/reef.bash
                     COMMAND reef_tool completion zsh > ${completion}/_reef
                     COMMAND reef_tool completion fish > ${completion}/reef.fish DEPENDS reef_tool VERBATIM)
  add_custom_target(reef_completion DEPENDS ${completion}/reef.bash ${completion}/_reef ${completion}/reef.fish)
  add_dependencies(reef_extras reef_completion)
  install(FILES ${completion}/reef.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME reef
          OPTIONAL)
  install(FILES ${completion}/_reef DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
  install(FILES ${completion}/reef.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)
endif()
