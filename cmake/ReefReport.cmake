# Style and script of report.html as byte arrays in report_page.h, which src/experiment/present/report.c includes.
set(reef_report_page "/* Made by cmake/ReefReport.cmake from src/experiment/present/page. */\n")
foreach(asset style.css script.js)
  set(path ${PROJECT_SOURCE_DIR}/src/experiment/present/page/${asset})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1, " bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................................)" "\\1\n"
                       bytes "${bytes}")
  string(REGEX REPLACE "\\..*" "" name ${asset})
  string(APPEND reef_report_page "static const char page_${name}[] = {\n${bytes}0x00};\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/report_page.h CONTENT "${reef_report_page}" @ONLY)
