# What a Python wheel holds beside the files of python/reef: the library under one plain name, the command, and the data of the experiments.
# scikit-build-core installs this component and nothing else (pyproject.toml).
if(SKBUILD)
  install(PROGRAMS $<TARGET_FILE:reef_shared> DESTINATION reef RENAME libreef.so COMPONENT python)
  install(PROGRAMS $<TARGET_FILE:reef_tool> DESTINATION reef/bin COMPONENT python)
  install(FILES data/digits.npy data/digits_labels.npy DESTINATION reef/data COMPONENT python)
endif()
