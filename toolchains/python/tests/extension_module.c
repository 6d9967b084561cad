// Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
//
// A module that tells the Python that it was compiled for.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "toolchains/python/tests/extension_number.h"

static PyObject* number(PyObject* self, PyObject* ignored) {
  (void)self, (void)ignored;
  return PyLong_FromLong(LOCAL + extension_number());
}

static PyMethodDef methods[] = {{"number", number, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "compiled", .m_size = -1,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit_compiled(void) {
  PyObject* made = PyModule_Create(&module);
  if (made) PyModule_AddStringConstant(made, "python", PY_VERSION);
  return made;
}
