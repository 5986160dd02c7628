"""CUDA's error codes: number, name and text, and what each says about the cause.

Numbers, names and texts are those of cudaGetErrorName and cudaGetErrorString in the CUDA 12.9 and 13.5
runtimes; the driver API shares the numbers. HIP prints the same texts for the same faults.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ncclscope.lazy import lazy

if TYPE_CHECKING:
    from ncclscope.model import Value

__all__ = ["CUDAS_OWN", "READ_ELSEWHERE", "CudaError", "by_code", "by_name", "by_text", "verdict"]


class CudaError(msgspec.Struct, frozen=True):
    """One error of the CUDA runtime."""

    code: int
    name: str
    text: str


# Number, name and text; a text longer than the line is cut at a word, which is enough to know it by.
_TABLE = """\
1 cudaErrorInvalidValue invalid argument
2 cudaErrorMemoryAllocation out of memory
3 cudaErrorInitializationError initialization error
4 cudaErrorCudartUnloading driver shutting down
5 cudaErrorProfilerDisabled profiler disabled while using external profiling tool
6 cudaErrorProfilerNotInitialized profiler not initialized: call cudaProfilerInitialize()
7 cudaErrorProfilerAlreadyStarted profiler already started
8 cudaErrorProfilerAlreadyStopped profiler already stopped
9 cudaErrorInvalidConfiguration invalid configuration argument
10 cudaErrorVersionTranslation Driver is newer than runtime and returned parameters the runtime cannot
12 cudaErrorInvalidPitchValue invalid pitch argument
13 cudaErrorInvalidSymbol invalid device symbol
16 cudaErrorInvalidHostPointer invalid host pointer
17 cudaErrorInvalidDevicePointer invalid device pointer
18 cudaErrorInvalidTexture invalid texture reference
19 cudaErrorInvalidTextureBinding texture is not bound to a pointer
20 cudaErrorInvalidChannelDescriptor invalid channel descriptor
21 cudaErrorInvalidMemcpyDirection invalid copy direction for memcpy
22 cudaErrorAddressOfConstant invalid address of constant
23 cudaErrorTextureFetchFailed fetch from texture failed
24 cudaErrorTextureNotBound cannot fetch from a texture that is not bound
25 cudaErrorSynchronizationError incorrect use of __syncthreads()
26 cudaErrorInvalidFilterSetting linear filtering not supported for non-float type
27 cudaErrorInvalidNormSetting read as normalized float not supported for data type
28 cudaErrorMixedDeviceExecution device emulation mode and device execution mode cannot be mixed
31 cudaErrorNotYetImplemented feature not yet implemented
32 cudaErrorMemoryValueTooLarge memory size or pointer value too large to fit in 32 bit
34 cudaErrorStubLibrary CUDA driver is a stub library
35 cudaErrorInsufficientDriver CUDA driver version is insufficient for CUDA runtime version
36 cudaErrorCallRequiresNewerDriver API call is not supported in the installed CUDA driver
37 cudaErrorInvalidSurface invalid surface reference
43 cudaErrorDuplicateVariableName duplicate global variable looked up by string name
44 cudaErrorDuplicateTextureName duplicate texture looked up by string name
45 cudaErrorDuplicateSurfaceName duplicate surface looked up by string name
46 cudaErrorDevicesUnavailable CUDA-capable device(s) is/are busy or unavailable
49 cudaErrorIncompatibleDriverContext incompatible driver context
52 cudaErrorMissingConfiguration __global__ function call is not configured
53 cudaErrorPriorLaunchFailure unspecified launch failure in prior launch
65 cudaErrorLaunchMaxDepthExceeded launch would exceed maximum depth of nested launches
66 cudaErrorLaunchFileScopedTex launch failed because kernel uses unsupported, file-scoped textures (texture
67 cudaErrorLaunchFileScopedSurf launch failed because kernel uses unsupported, file-scoped surfaces (surface
68 cudaErrorSyncDepthExceeded cudaDeviceSynchronize failed because caller's grid depth exceeds
69 cudaErrorLaunchPendingCountExceeded launch failed because launch would exceed
98 cudaErrorInvalidDeviceFunction invalid device function
100 cudaErrorNoDevice no CUDA-capable device is detected
101 cudaErrorInvalidDevice invalid device ordinal
102 cudaErrorDeviceNotLicensed device doesn't have valid Grid license
103 cudaErrorSoftwareValidityNotEstablished integrity checks failed
127 cudaErrorStartupFailure startup failure in cuda runtime
200 cudaErrorInvalidKernelImage device kernel image is invalid
201 cudaErrorDeviceUninitialized invalid device context
205 cudaErrorMapBufferObjectFailed mapping of buffer object failed
206 cudaErrorUnmapBufferObjectFailed unmapping of buffer object failed
207 cudaErrorArrayIsMapped array is mapped
208 cudaErrorAlreadyMapped resource already mapped
209 cudaErrorNoKernelImageForDevice no kernel image is available for execution on the device
210 cudaErrorAlreadyAcquired resource already acquired
211 cudaErrorNotMapped resource not mapped
212 cudaErrorNotMappedAsArray resource not mapped as array
213 cudaErrorNotMappedAsPointer resource not mapped as pointer
214 cudaErrorECCUncorrectable uncorrectable ECC error encountered
215 cudaErrorUnsupportedLimit limit is not supported on this architecture
216 cudaErrorDeviceAlreadyInUse exclusive-thread device already in use by a different thread
217 cudaErrorPeerAccessUnsupported peer access is not supported between these two devices
218 cudaErrorInvalidPtx a PTX JIT compilation failed
219 cudaErrorInvalidGraphicsContext invalid OpenGL or DirectX context
220 cudaErrorNvlinkUncorrectable uncorrectable NVLink error detected during the execution
221 cudaErrorJitCompilerNotFound PTX JIT compiler library not found
222 cudaErrorUnsupportedPtxVersion the provided PTX was compiled with an unsupported toolchain.
223 cudaErrorJitCompilationDisabled PTX JIT compilation was disabled
224 cudaErrorUnsupportedExecAffinity the provided execution affinity is not supported
225 cudaErrorUnsupportedDevSideSync the provided PTX contains unsupported call to cudaDeviceSynchronize
226 cudaErrorContained Invalid access of peer GPU memory over nvlink or a hardware error
227 cudaErrorInsufficientLoaderVersion Loader version is insufficient for fatbin
300 cudaErrorInvalidSource device kernel image is invalid
301 cudaErrorFileNotFound file not found
302 cudaErrorSharedObjectSymbolNotFound shared object symbol not found
303 cudaErrorSharedObjectInitFailed shared object initialization failed
304 cudaErrorOperatingSystem OS call failed or operation not supported on this OS
400 cudaErrorInvalidResourceHandle invalid resource handle
401 cudaErrorIllegalState the operation cannot be performed in the present state
402 cudaErrorLossyQuery attempted introspection would be semantically lossy
500 cudaErrorSymbolNotFound named symbol not found
600 cudaErrorNotReady device not ready
700 cudaErrorIllegalAddress an illegal memory access was encountered
701 cudaErrorLaunchOutOfResources too many resources requested for launch
702 cudaErrorLaunchTimeout the launch timed out and was terminated
703 cudaErrorLaunchIncompatibleTexturing launch uses incompatible texturing mode
704 cudaErrorPeerAccessAlreadyEnabled peer access is already enabled
705 cudaErrorPeerAccessNotEnabled peer access has not been enabled
708 cudaErrorSetOnActiveProcess cannot set while device is active in this process
709 cudaErrorContextIsDestroyed context is destroyed
710 cudaErrorAssert device-side assert triggered
711 cudaErrorTooManyPeers peer mapping resources exhausted
712 cudaErrorHostMemoryAlreadyRegistered part or all of the requested memory range is already mapped
713 cudaErrorHostMemoryNotRegistered pointer does not correspond to a registered memory region
714 cudaErrorHardwareStackError hardware stack error
715 cudaErrorIllegalInstruction an illegal instruction was encountered
716 cudaErrorMisalignedAddress misaligned address
717 cudaErrorInvalidAddressSpace operation not supported on global/shared address space
718 cudaErrorInvalidPc invalid program counter
719 cudaErrorLaunchFailure unspecified launch failure
720 cudaErrorCooperativeLaunchTooLarge too many blocks in cooperative launch
721 cudaErrorTensorMemoryLeak tensor memory not completely freed
800 cudaErrorNotPermitted operation not permitted
801 cudaErrorNotSupported operation not supported
802 cudaErrorSystemNotReady system not yet initialized
803 cudaErrorSystemDriverMismatch system has unsupported display driver / cuda driver combination
804 cudaErrorCompatNotSupportedOnDevice forward compatibility was attempted on non supported HW
805 cudaErrorMpsConnectionFailed MPS client failed to connect to the MPS control daemon or the MPS server
806 cudaErrorMpsRpcFailure the remote procedural call between the MPS server and the MPS client failed
807 cudaErrorMpsServerNotReady MPS server is not ready to accept new MPS client requests
808 cudaErrorMpsMaxClientsReached the hardware resources required to create MPS client have been exhausted
809 cudaErrorMpsMaxConnectionsReached the hardware resources required to support device connections have been
810 cudaErrorMpsClientTerminated the MPS client has been terminated by the server
811 cudaErrorCdpNotSupported is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does
812 cudaErrorCdpVersionMismatch unsupported interaction between different versions of CUDA Dynamic
900 cudaErrorStreamCaptureUnsupported operation not permitted when stream is capturing
901 cudaErrorStreamCaptureInvalidated operation failed due to a previous error during capture
902 cudaErrorStreamCaptureMerge operation would result in a merge of separate capture sequences
903 cudaErrorStreamCaptureUnmatched capture was not ended in the same stream as it began
904 cudaErrorStreamCaptureUnjoined capturing stream has unjoined work
905 cudaErrorStreamCaptureIsolation dependency created on uncaptured work in another stream
906 cudaErrorStreamCaptureImplicit operation would make the legacy stream depend on a capturing blocking
907 cudaErrorCapturedEvent operation not permitted on an event last recorded in a capturing stream
908 cudaErrorStreamCaptureWrongThread attempt to terminate a thread-local capture sequence from another
909 cudaErrorTimeout wait operation timed out
910 cudaErrorGraphExecUpdateFailure the graph update was not performed because it included changes which
911 cudaErrorExternalDevice an async error has occured in external entity outside of CUDA
912 cudaErrorInvalidClusterSize a kernel launch error has occurred due to cluster misconfiguration
913 cudaErrorFunctionNotLoaded the function handle is not loaded when calling an API that requires a loaded
914 cudaErrorInvalidResourceType one or more resources passed in are not valid resource types for the
915 cudaErrorInvalidResourceConfiguration one or more resources are insufficient or non-applicable for the
917 cudaErrorStreamDetached API call not permitted since the green context associated with the stream has
918 cudaErrorGraphRecaptureFailure recapturing to the source graph failed and had to be terminated
919 cudaErrorFabricNotReady GPU fabric is not ready within the probe wait budget; application may retry (see
999 cudaErrorUnknown unknown error
"""

_ERRORS = tuple(
    CudaError(int(n), name, text) for n, name, text in (row.split(" ", 2) for row in _TABLE.splitlines())
)

_BY_CODE = {error.code: error for error in _ERRORS}
_BY_NAME = {error.name: error for error in _ERRORS}
# Longest text first, so that `operation not permitted when stream is capturing` is not taken for its
# beginning. Of two errors with one text (200 and 300) the lower number is the one that launches return.
_BY_TEXT = sorted(_ERRORS, key=lambda error: (-len(error.text), error.code))

# Driver-API names (cuGetErrorName) that are printed by drivers, Triton, JAX and container tools.
_DRIVER_NAMES = {
    "CUDA_ERROR_INVALID_VALUE": 1,
    "CUDA_ERROR_OUT_OF_MEMORY": 2,
    "CUDA_ERROR_NOT_INITIALIZED": 3,
    "CUDA_ERROR_DEINITIALIZED": 4,
    "CUDA_ERROR_STUB_LIBRARY": 34,
    "CUDA_ERROR_DEVICE_UNAVAILABLE": 46,
    "CUDA_ERROR_NO_DEVICE": 100,
    "CUDA_ERROR_INVALID_DEVICE": 101,
    "CUDA_ERROR_INVALID_IMAGE": 200,
    "CUDA_ERROR_NO_BINARY_FOR_GPU": 209,
    "CUDA_ERROR_ECC_UNCORRECTABLE": 214,
    "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED": 217,
    "CUDA_ERROR_INVALID_PTX": 218,
    "CUDA_ERROR_NVLINK_UNCORRECTABLE": 220,
    "CUDA_ERROR_JIT_COMPILER_NOT_FOUND": 221,
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": 222,
    "CUDA_ERROR_CONTAINED": 226,
    "CUDA_ERROR_OPERATING_SYSTEM": 304,
    "CUDA_ERROR_INVALID_HANDLE": 400,
    "CUDA_ERROR_NOT_FOUND": 500,
    "CUDA_ERROR_ILLEGAL_ADDRESS": 700,
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": 701,
    "CUDA_ERROR_LAUNCH_TIMEOUT": 702,
    "CUDA_ERROR_ASSERT": 710,
    "CUDA_ERROR_HARDWARE_STACK_ERROR": 714,
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": 715,
    "CUDA_ERROR_MISALIGNED_ADDRESS": 716,
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": 717,
    "CUDA_ERROR_INVALID_PC": 718,
    "CUDA_ERROR_LAUNCH_FAILED": 719,
    "CUDA_ERROR_NOT_PERMITTED": 800,
    "CUDA_ERROR_NOT_SUPPORTED": 801,
    "CUDA_ERROR_SYSTEM_NOT_READY": 802,
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": 803,
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": 804,
    "CUDA_ERROR_MPS_CONNECTION_FAILED": 805,
    "CUDA_ERROR_MPS_RPC_FAILURE": 806,
    "CUDA_ERROR_UNKNOWN": 999,
}

# Errors that name a root cause by themselves.
_CAUSES = {
    2: "oom-gpu",
    35: "driver-mismatch",
    36: "driver-mismatch",
    98: "arch-mismatch",
    100: "gpu-not-visible",
    101: "invalid-usage",
    209: "arch-mismatch",
    214: "gpu-hardware-ecc",
    220: "nvlink-fabric",
    222: "driver-mismatch",  # the driver is older than the compiler that made the PTX
    710: "device-assert",
    803: "driver-mismatch",
    804: "driver-mismatch",
}
# Errors that only make a cause likely: the kernel log, the fabric's state or an assert line decides.
_SUGGESTS = {
    3: "invalid-usage",  # mostly a fork after CUDA was used
    34: "driver-mismatch",
    200: "arch-mismatch",
    217: "p2p-acs-iommu",
    218: "arch-mismatch",
    221: "driver-mismatch",
    223: "arch-mismatch",
    226: "gpu-hardware-ecc",  # or a peer process that went away
    227: "version-mismatch",
    400: "invalid-usage",
    500: "arch-mismatch",
    700: "illegal-access-app",
    702: "gpu-hang",
    711: "p2p-acs-iommu",
    714: "illegal-access-app",
    715: "illegal-access-app",
    716: "illegal-access-app",
    717: "illegal-access-app",
    718: "illegal-access-app",
    719: "illegal-access-app",
    721: "illegal-access-app",
    802: "fabric-manager",
    919: "nvlink-fabric",
}
_ECHOES = frozenset({4, 709, 806, 901})  # something else ended or failed before
_HARMLESS = frozenset({704})


# CUDA texts that no other library uses, and that stand whole in a line.
CUDAS_OWN = (
    "CUDA driver version is insufficient for CUDA runtime version",
    "API call is not supported in the installed CUDA driver",
    "no CUDA-capable device is detected",
    "no kernel image is available for execution on the device",
    "uncorrectable ECC error encountered",
    "uncorrectable NVLink error detected during the execution",
    "peer access is not supported between these two devices",
    "the provided PTX was compiled with an unsupported toolchain",
    "an illegal memory access was encountered",
    "device-side assert triggered",
    "unspecified launch failure",
    "system not yet initialized",
    "system has unsupported display driver / cuda driver combination",
    "forward compatibility was attempted on non supported HW",
)
READ_ELSEWHERE = lazy(
    r"NCCL |CUDA error|CUDA driver error|(?i:cuda failure)|cuda runtime error|cudaError[A-Z]|CUDA_ERROR_|HIP error|"
    r"Unexpected error from cudaGetDeviceCount|Triton Error|CUDA IPC handle"
)


def by_code(code: int) -> CudaError | None:
    """The error with this number."""
    return _BY_CODE.get(code)


def by_name(name: str) -> CudaError | None:
    """The error of a runtime (`cudaErrorAssert`) or driver (`CUDA_ERROR_ASSERT`) name."""
    error = _BY_NAME.get(name)
    if error is None and name in _DRIVER_NAMES:
        error = _BY_CODE.get(_DRIVER_NAMES[name])
    return error


def by_text(text: str) -> CudaError | None:
    """The error whose text `text` starts with, whatever follows it."""
    for error in _BY_TEXT:
        if (
            text.startswith(error.text.rstrip("."))
            and not text[len(error.text) : len(error.text) + 1].isalnum()
        ):
            return error
    return None


def verdict(error: CudaError, context: str = "") -> dict[str, Value]:
    """nature with cause or suggests, as fields of an event; `context` is the text around the error."""
    code = error.code
    if code in _CAUSES:
        return {"nature": "cause", "cause": _CAUSES[code]}
    if code in _HARMLESS:
        return {"nature": "noise"}
    if code in _ECHOES:
        return {"nature": "consequence"}
    fields: dict[str, Value] = {"nature": "symptom"}
    if code in _SUGGESTS:
        fields["suggests"] = _SUGGESTS[code]
    # The watchdog's own event query collides with a graph capture elsewhere in the process.
    elif code in (900, 907) and re.search(r"watchdog", context, re.IGNORECASE):
        fields["suggests"] = "torch-bug"
    return fields
