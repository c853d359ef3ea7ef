# The live page of `reef dash`: libmicrohttpd serves it, and node bundles it from src/net/page with two libraries from npm. Both are optional;
# what is missing is named here, by `reef doctor` and by `reef dash`. Sets
#   reef_http_found    libmicrohttpd is there
#   reef_page_found    and the page is in ${PROJECT_BINARY_DIR}/include/dash_page.h; otherwise that file has none
set(REEF_DASH AUTO CACHE STRING "Bundle the live page: ON, OFF, or AUTO (if libmicrohttpd, node and npm are there)")
set(reef_http_found FALSE)
set(reef_page_found FALSE)
set(reef_page_header ${PROJECT_BINARY_DIR}/include/dash_page.h)
set(reef_page_folder ${PROJECT_BINARY_DIR}/page)

find_path(MICROHTTPD_INCLUDE_DIR microhttpd.h)
find_library(MICROHTTPD_LIBRARY microhttpd)
find_program(NODE_EXECUTABLE node)
find_program(NPM_EXECUTABLE npm)
mark_as_advanced(MICROHTTPD_INCLUDE_DIR MICROHTTPD_LIBRARY NODE_EXECUTABLE NPM_EXECUTABLE)
if(MICROHTTPD_INCLUDE_DIR AND MICROHTTPD_LIBRARY)
  set(reef_http_found TRUE)
endif()

# Installs what the lock file names and bundles, unless this has been done for the same files. Sets reef_page_problem if it cannot.
function(reef_bundle_page)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/net/page/*)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  set(stamp "")
  foreach(source IN LISTS sources)
    file(SHA256 ${source} hash)
    string(APPEND stamp "${hash} ${source}\n")
  endforeach()
  set(done "")
  if(EXISTS ${reef_page_folder}/stamp AND EXISTS ${reef_page_header})
    file(READ ${reef_page_folder}/stamp done)
  endif()
  if(done STREQUAL stamp)
    return()
  endif()
  file(MAKE_DIRECTORY ${reef_page_folder})
  file(REMOVE ${reef_page_folder}/stamp)
  file(COPY ${PROJECT_SOURCE_DIR}/src/net/page/package.json ${PROJECT_SOURCE_DIR}/src/net/page/package-lock.json
       DESTINATION ${reef_page_folder})
  execute_process(COMMAND ${NPM_EXECUTABLE} ci --ignore-scripts --no-audit --no-fund --prefer-offline --fetch-retries=1
                  WORKING_DIRECTORY ${reef_page_folder} TIMEOUT 300 RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    file(WRITE ${reef_page_folder}/log "${said}")
    set(reef_page_problem "npm could not install its libraries (${reef_page_folder}/log)" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${NODE_EXECUTABLE} ${PROJECT_SOURCE_DIR}/src/net/page/build.mjs ${reef_page_folder} ${reef_page_header}
                  TIMEOUT 300 RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    file(WRITE ${reef_page_folder}/log "${said}")
    set(reef_page_problem "node could not bundle it (${reef_page_folder}/log)" PARENT_SCOPE)
    return()
  endif()
  file(WRITE ${reef_page_folder}/stamp "${stamp}")
endfunction()

set(reef_page_problem "")
if(NOT REEF_DASH)
  set(reef_page_problem "REEF_DASH=OFF")
elseif(REEF_DASH STREQUAL AUTO AND (REEF_SANITIZE OR REEF_FUZZ))
  set(reef_page_problem "builds with sanitizers do without")
elseif(NOT reef_http_found)
  set(reef_page_problem "no libmicrohttpd")
elseif(NOT NODE_EXECUTABLE OR NOT NPM_EXECUTABLE)
  set(reef_page_problem "no node or npm")
else()
  reef_bundle_page()
endif()

if(reef_page_problem STREQUAL "")
  set(reef_page_found TRUE)
  message(STATUS "Network: the live page of reef dash is in")
elseif(REEF_DASH STREQUAL ON)
  message(FATAL_ERROR "REEF_DASH=ON, but the live page cannot be made: ${reef_page_problem}")
else()
  message(STATUS "Network: the live page of reef dash is left out: ${reef_page_problem}")
  file(CONFIGURE OUTPUT ${reef_page_header} CONTENT "/* Made by cmake/ReefDash.cmake: this build has no page. */
static const struct {
    const char *path, *type;
    const unsigned char *bytes;
    size_t size;
} page_files[] = {{\"/\", \"text/plain\", NULL, 0}};
" @ONLY)
  file(REMOVE ${reef_page_folder}/stamp)
endif()
