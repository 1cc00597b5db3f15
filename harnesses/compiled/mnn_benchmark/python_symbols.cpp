// What the library of the wheel `MNN` takes from Python, of which it is a module: without these names it is not loaded.
//
// Nothing here is used: the functions of MNN that this program calls call none of these. One that is still called
// ends the program.

#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] void refuse(const char* name) {
  std::fprintf(stderr, "ERROR: MNN's library called Python's %s, which is not here\n", name);
  std::exit(1);
}

}  // namespace

#define FUNCTION(name) [[noreturn]] void name() { refuse(#name); }
// Larger than any object of Python that it could be taken for; only its address is.
#define OBJECT(name) char name[1024];

extern "C" {

FUNCTION(PyArg_ParseTuple) FUNCTION(PyArg_ParseTupleAndKeywords) FUNCTION(PyBytes_Size) FUNCTION(PyCMethod_New)
FUNCTION(PyCallable_Check) FUNCTION(PyCapsule_GetPointer) FUNCTION(PyCapsule_New) FUNCTION(PyDict_GetItemString)
FUNCTION(PyDict_New) FUNCTION(PyDict_Next) FUNCTION(PyDict_SetItem) FUNCTION(PyDict_SetItemString)
FUNCTION(PyErr_Clear) FUNCTION(PyErr_ExceptionMatches) FUNCTION(PyErr_Format) FUNCTION(PyErr_Occurred)
FUNCTION(PyErr_SetString) FUNCTION(PyEval_RestoreThread) FUNCTION(PyEval_SaveThread) FUNCTION(PyFloat_AsDouble)
FUNCTION(PyFloat_FromDouble) FUNCTION(PyImport_AddModule) FUNCTION(PyImport_Import) FUNCTION(PyImport_ImportModule)
FUNCTION(PyList_GetItem) FUNCTION(PyList_New) FUNCTION(PyList_SetItem) FUNCTION(PyList_Size) FUNCTION(PyLong_AsLong)
FUNCTION(PyLong_AsLongLongAndOverflow) FUNCTION(PyLong_AsVoidPtr) FUNCTION(PyLong_FromLong)
FUNCTION(PyLong_FromLongLong) FUNCTION(PyModule_AddObject) FUNCTION(PyModule_Create2) FUNCTION(PyModule_GetName)
FUNCTION(PyObject_Call) FUNCTION(PyObject_CallObject) FUNCTION(PyObject_GetAttrString) FUNCTION(PyObject_IsInstance)
FUNCTION(PyObject_SetAttrString) FUNCTION(PySequence_Check) FUNCTION(PySequence_Fast) FUNCTION(PySequence_GetItem)
FUNCTION(PySequence_Size) FUNCTION(PySlice_Unpack) FUNCTION(PyTuple_GetItem) FUNCTION(PyTuple_New)
FUNCTION(PyTuple_SetItem) FUNCTION(PyTuple_Size) FUNCTION(PyType_IsSubtype) FUNCTION(PyType_Ready)
FUNCTION(PyUnicode_AsUTF8String) FUNCTION(PyUnicode_DecodeUTF8) FUNCTION(PyUnicode_FromString) FUNCTION(Py_BuildValue)
FUNCTION(_Py_Dealloc)

OBJECT(PyCapsule_Type) OBJECT(PyEllipsis_Type) OBJECT(PyExc_Exception) OBJECT(PyExc_ModuleNotFoundError)
OBJECT(PyExc_RuntimeError) OBJECT(PyExc_TypeError) OBJECT(PyExc_ValueError) OBJECT(PyFloat_Type) OBJECT(PySlice_Type)
OBJECT(_Py_FalseStruct) OBJECT(_Py_NoneStruct) OBJECT(_Py_TrueStruct)

}  // extern "C"
