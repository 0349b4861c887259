from google.protobuf import duration_pb2 as _duration_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RegionShape(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REGION_SHAPE_UNSPECIFIED: _ClassVar[RegionShape]
    REGION_SHAPE_RECTANGLE: _ClassVar[RegionShape]
    REGION_SHAPE_ELLIPSE: _ClassVar[RegionShape]
    REGION_SHAPE_FACES: _ClassVar[RegionShape]

class RegionEffect(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REGION_EFFECT_UNSPECIFIED: _ClassVar[RegionEffect]
    REGION_EFFECT_BLUR: _ClassVar[RegionEffect]
    REGION_EFFECT_PIXELATE: _ClassVar[RegionEffect]
    REGION_EFFECT_FILL: _ClassVar[RegionEffect]

class OutputFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTPUT_FORMAT_UNSPECIFIED: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_ORIGINAL: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_JPEG: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_PNG: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_WEBP: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_AVIF: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_GIF: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_JXL: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_AUTO: _ClassVar[OutputFormat]
    OUTPUT_FORMAT_RAW: _ClassVar[OutputFormat]

class AutoEffort(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUTO_EFFORT_UNSPECIFIED: _ClassVar[AutoEffort]
    AUTO_EFFORT_LOW: _ClassVar[AutoEffort]
    AUTO_EFFORT_MEDIUM: _ClassVar[AutoEffort]
    AUTO_EFFORT_HIGH: _ClassVar[AutoEffort]

class ResizeMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESIZE_MODE_UNSPECIFIED: _ClassVar[ResizeMode]
    RESIZE_MODE_FIT: _ClassVar[ResizeMode]
    RESIZE_MODE_FILL: _ClassVar[ResizeMode]
    RESIZE_MODE_STRETCH: _ClassVar[ResizeMode]

class ResamplingKernel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESAMPLING_KERNEL_UNSPECIFIED: _ClassVar[ResamplingKernel]
    RESAMPLING_KERNEL_LANCZOS3: _ClassVar[ResamplingKernel]
    RESAMPLING_KERNEL_LANCZOS2: _ClassVar[ResamplingKernel]
    RESAMPLING_KERNEL_MITCHELL: _ClassVar[ResamplingKernel]
    RESAMPLING_KERNEL_BICUBIC: _ClassVar[ResamplingKernel]
    RESAMPLING_KERNEL_BILINEAR: _ClassVar[ResamplingKernel]
    RESAMPLING_KERNEL_BOX: _ClassVar[ResamplingKernel]
    RESAMPLING_KERNEL_NEAREST: _ClassVar[ResamplingKernel]

class Gravity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GRAVITY_UNSPECIFIED: _ClassVar[Gravity]
    GRAVITY_CENTER: _ClassVar[Gravity]
    GRAVITY_NORTH: _ClassVar[Gravity]
    GRAVITY_NORTH_EAST: _ClassVar[Gravity]
    GRAVITY_EAST: _ClassVar[Gravity]
    GRAVITY_SOUTH_EAST: _ClassVar[Gravity]
    GRAVITY_SOUTH: _ClassVar[Gravity]
    GRAVITY_SOUTH_WEST: _ClassVar[Gravity]
    GRAVITY_WEST: _ClassVar[Gravity]
    GRAVITY_NORTH_WEST: _ClassVar[Gravity]
    GRAVITY_SMART: _ClassVar[Gravity]
    GRAVITY_FACES: _ClassVar[Gravity]

class ColorSpace(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLOR_SPACE_UNSPECIFIED: _ClassVar[ColorSpace]
    COLOR_SPACE_SRGB: _ClassVar[ColorSpace]
    COLOR_SPACE_KEEP: _ClassVar[ColorSpace]
    COLOR_SPACE_DISPLAY_P3: _ClassVar[ColorSpace]

class GainMap(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GAIN_MAP_UNSPECIFIED: _ClassVar[GainMap]
    GAIN_MAP_DROP: _ClassVar[GainMap]
    GAIN_MAP_KEEP: _ClassVar[GainMap]

class MetadataPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    METADATA_POLICY_UNSPECIFIED: _ClassVar[MetadataPolicy]
    METADATA_POLICY_STRIP: _ClassVar[MetadataPolicy]
    METADATA_POLICY_KEEP_COPYRIGHT: _ClassVar[MetadataPolicy]
    METADATA_POLICY_KEEP_ALL: _ClassVar[MetadataPolicy]
    METADATA_POLICY_SELECTED: _ClassVar[MetadataPolicy]

class RectUnit(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECT_UNIT_UNSPECIFIED: _ClassVar[RectUnit]
    RECT_UNIT_PIXELS: _ClassVar[RectUnit]
    RECT_UNIT_FRACTIONS: _ClassVar[RectUnit]

class TextAlignment(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TEXT_ALIGNMENT_UNSPECIFIED: _ClassVar[TextAlignment]
    TEXT_ALIGNMENT_START: _ClassVar[TextAlignment]
    TEXT_ALIGNMENT_CENTER: _ClassVar[TextAlignment]
    TEXT_ALIGNMENT_END: _ClassVar[TextAlignment]

class OverlayBlend(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OVERLAY_BLEND_UNSPECIFIED: _ClassVar[OverlayBlend]
    OVERLAY_BLEND_OVER: _ClassVar[OverlayBlend]
    OVERLAY_BLEND_MULTIPLY: _ClassVar[OverlayBlend]
    OVERLAY_BLEND_SCREEN: _ClassVar[OverlayBlend]

class ChromaSubsampling(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHROMA_SUBSAMPLING_UNSPECIFIED: _ClassVar[ChromaSubsampling]
    CHROMA_SUBSAMPLING_444: _ClassVar[ChromaSubsampling]
    CHROMA_SUBSAMPLING_422: _ClassVar[ChromaSubsampling]
    CHROMA_SUBSAMPLING_420: _ClassVar[ChromaSubsampling]

class PNGFilter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PNG_FILTER_UNSPECIFIED: _ClassVar[PNGFilter]
    PNG_FILTER_ADAPTIVE: _ClassVar[PNGFilter]
    PNG_FILTER_NONE: _ClassVar[PNGFilter]
    PNG_FILTER_SUB: _ClassVar[PNGFilter]
    PNG_FILTER_UP: _ClassVar[PNGFilter]
    PNG_FILTER_AVERAGE: _ClassVar[PNGFilter]
    PNG_FILTER_PAETH: _ClassVar[PNGFilter]

class TensorElementType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TENSOR_ELEMENT_TYPE_UNSPECIFIED: _ClassVar[TensorElementType]
    TENSOR_ELEMENT_TYPE_U8: _ClassVar[TensorElementType]
    TENSOR_ELEMENT_TYPE_F16: _ClassVar[TensorElementType]
    TENSOR_ELEMENT_TYPE_BF16: _ClassVar[TensorElementType]
    TENSOR_ELEMENT_TYPE_F32: _ClassVar[TensorElementType]

class TensorLayout(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TENSOR_LAYOUT_UNSPECIFIED: _ClassVar[TensorLayout]
    TENSOR_LAYOUT_HWC: _ClassVar[TensorLayout]
    TENSOR_LAYOUT_CHW: _ClassVar[TensorLayout]

class TensorChannels(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TENSOR_CHANNELS_UNSPECIFIED: _ClassVar[TensorChannels]
    TENSOR_CHANNELS_RGB: _ClassVar[TensorChannels]
    TENSOR_CHANNELS_BGR: _ClassVar[TensorChannels]
    TENSOR_CHANNELS_GRAY: _ClassVar[TensorChannels]

class TensorNormalization(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TENSOR_NORMALIZATION_UNSPECIFIED: _ClassVar[TensorNormalization]
    TENSOR_NORMALIZATION_NONE: _ClassVar[TensorNormalization]
    TENSOR_NORMALIZATION_UNIT: _ClassVar[TensorNormalization]
    TENSOR_NORMALIZATION_HALF: _ClassVar[TensorNormalization]
    TENSOR_NORMALIZATION_IMAGENET: _ClassVar[TensorNormalization]
    TENSOR_NORMALIZATION_CLIP: _ClassVar[TensorNormalization]

class WarningCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WARNING_CODE_UNSPECIFIED: _ClassVar[WarningCode]
    WARNING_CODE_EXIF_IGNORED: _ClassVar[WarningCode]
    WARNING_CODE_FIRST_IMAGE_ONLY: _ClassVar[WarningCode]
    WARNING_CODE_DAMAGE_REPAIRED: _ClassVar[WarningCode]
    WARNING_CODE_END_ADDED: _ClassVar[WarningCode]
    WARNING_CODE_TRUNCATED: _ClassVar[WarningCode]
    WARNING_CODE_PROFILE_IGNORED: _ClassVar[WarningCode]
    WARNING_CODE_DAMAGED: _ClassVar[WarningCode]
    WARNING_CODE_SCALE_FACTOR_IGNORED: _ClassVar[WarningCode]
    WARNING_CODE_TARGET_SIMILARITY_IGNORED: _ClassVar[WarningCode]
    WARNING_CODE_TARGET_SIMILARITY_MISSED: _ClassVar[WarningCode]
    WARNING_CODE_SIZE_REDUCED: _ClassVar[WarningCode]
    WARNING_CODE_QUALITY_REDUCED: _ClassVar[WarningCode]
    WARNING_CODE_LARGER_THAN_IMAGE: _ClassVar[WarningCode]
    WARNING_CODE_NEVER_LARGER_IGNORED: _ClassVar[WarningCode]
    WARNING_CODE_FORMAT_CHANGED: _ClassVar[WarningCode]
    WARNING_CODE_DAMAGE_TOLERATED: _ClassVar[WarningCode]
    WARNING_CODE_ORIENTATION_IGNORED: _ClassVar[WarningCode]
    WARNING_CODE_DAMAGE_UNCHECKED: _ClassVar[WarningCode]
    WARNING_CODE_FRAMES_DROPPED: _ClassVar[WarningCode]
    WARNING_CODE_CREDENTIALS_REMOVED: _ClassVar[WarningCode]
    WARNING_CODE_COLOR_SPACE_CHANGED: _ClassVar[WarningCode]
    WARNING_CODE_TRIM_IGNORED: _ClassVar[WarningCode]
    WARNING_CODE_BIT_DEPTH_REDUCED: _ClassVar[WarningCode]
    WARNING_CODE_FACES_NOT_FOUND: _ClassVar[WarningCode]
    WARNING_CODE_FACES_CUT: _ClassVar[WarningCode]
    WARNING_CODE_GAIN_MAP_REMOVED: _ClassVar[WarningCode]
REGION_SHAPE_UNSPECIFIED: RegionShape
REGION_SHAPE_RECTANGLE: RegionShape
REGION_SHAPE_ELLIPSE: RegionShape
REGION_SHAPE_FACES: RegionShape
REGION_EFFECT_UNSPECIFIED: RegionEffect
REGION_EFFECT_BLUR: RegionEffect
REGION_EFFECT_PIXELATE: RegionEffect
REGION_EFFECT_FILL: RegionEffect
OUTPUT_FORMAT_UNSPECIFIED: OutputFormat
OUTPUT_FORMAT_ORIGINAL: OutputFormat
OUTPUT_FORMAT_JPEG: OutputFormat
OUTPUT_FORMAT_PNG: OutputFormat
OUTPUT_FORMAT_WEBP: OutputFormat
OUTPUT_FORMAT_AVIF: OutputFormat
OUTPUT_FORMAT_GIF: OutputFormat
OUTPUT_FORMAT_JXL: OutputFormat
OUTPUT_FORMAT_AUTO: OutputFormat
OUTPUT_FORMAT_RAW: OutputFormat
AUTO_EFFORT_UNSPECIFIED: AutoEffort
AUTO_EFFORT_LOW: AutoEffort
AUTO_EFFORT_MEDIUM: AutoEffort
AUTO_EFFORT_HIGH: AutoEffort
RESIZE_MODE_UNSPECIFIED: ResizeMode
RESIZE_MODE_FIT: ResizeMode
RESIZE_MODE_FILL: ResizeMode
RESIZE_MODE_STRETCH: ResizeMode
RESAMPLING_KERNEL_UNSPECIFIED: ResamplingKernel
RESAMPLING_KERNEL_LANCZOS3: ResamplingKernel
RESAMPLING_KERNEL_LANCZOS2: ResamplingKernel
RESAMPLING_KERNEL_MITCHELL: ResamplingKernel
RESAMPLING_KERNEL_BICUBIC: ResamplingKernel
RESAMPLING_KERNEL_BILINEAR: ResamplingKernel
RESAMPLING_KERNEL_BOX: ResamplingKernel
RESAMPLING_KERNEL_NEAREST: ResamplingKernel
GRAVITY_UNSPECIFIED: Gravity
GRAVITY_CENTER: Gravity
GRAVITY_NORTH: Gravity
GRAVITY_NORTH_EAST: Gravity
GRAVITY_EAST: Gravity
GRAVITY_SOUTH_EAST: Gravity
GRAVITY_SOUTH: Gravity
GRAVITY_SOUTH_WEST: Gravity
GRAVITY_WEST: Gravity
GRAVITY_NORTH_WEST: Gravity
GRAVITY_SMART: Gravity
GRAVITY_FACES: Gravity
COLOR_SPACE_UNSPECIFIED: ColorSpace
COLOR_SPACE_SRGB: ColorSpace
COLOR_SPACE_KEEP: ColorSpace
COLOR_SPACE_DISPLAY_P3: ColorSpace
GAIN_MAP_UNSPECIFIED: GainMap
GAIN_MAP_DROP: GainMap
GAIN_MAP_KEEP: GainMap
METADATA_POLICY_UNSPECIFIED: MetadataPolicy
METADATA_POLICY_STRIP: MetadataPolicy
METADATA_POLICY_KEEP_COPYRIGHT: MetadataPolicy
METADATA_POLICY_KEEP_ALL: MetadataPolicy
METADATA_POLICY_SELECTED: MetadataPolicy
RECT_UNIT_UNSPECIFIED: RectUnit
RECT_UNIT_PIXELS: RectUnit
RECT_UNIT_FRACTIONS: RectUnit
TEXT_ALIGNMENT_UNSPECIFIED: TextAlignment
TEXT_ALIGNMENT_START: TextAlignment
TEXT_ALIGNMENT_CENTER: TextAlignment
TEXT_ALIGNMENT_END: TextAlignment
OVERLAY_BLEND_UNSPECIFIED: OverlayBlend
OVERLAY_BLEND_OVER: OverlayBlend
OVERLAY_BLEND_MULTIPLY: OverlayBlend
OVERLAY_BLEND_SCREEN: OverlayBlend
CHROMA_SUBSAMPLING_UNSPECIFIED: ChromaSubsampling
CHROMA_SUBSAMPLING_444: ChromaSubsampling
CHROMA_SUBSAMPLING_422: ChromaSubsampling
CHROMA_SUBSAMPLING_420: ChromaSubsampling
PNG_FILTER_UNSPECIFIED: PNGFilter
PNG_FILTER_ADAPTIVE: PNGFilter
PNG_FILTER_NONE: PNGFilter
PNG_FILTER_SUB: PNGFilter
PNG_FILTER_UP: PNGFilter
PNG_FILTER_AVERAGE: PNGFilter
PNG_FILTER_PAETH: PNGFilter
TENSOR_ELEMENT_TYPE_UNSPECIFIED: TensorElementType
TENSOR_ELEMENT_TYPE_U8: TensorElementType
TENSOR_ELEMENT_TYPE_F16: TensorElementType
TENSOR_ELEMENT_TYPE_BF16: TensorElementType
TENSOR_ELEMENT_TYPE_F32: TensorElementType
TENSOR_LAYOUT_UNSPECIFIED: TensorLayout
TENSOR_LAYOUT_HWC: TensorLayout
TENSOR_LAYOUT_CHW: TensorLayout
TENSOR_CHANNELS_UNSPECIFIED: TensorChannels
TENSOR_CHANNELS_RGB: TensorChannels
TENSOR_CHANNELS_BGR: TensorChannels
TENSOR_CHANNELS_GRAY: TensorChannels
TENSOR_NORMALIZATION_UNSPECIFIED: TensorNormalization
TENSOR_NORMALIZATION_NONE: TensorNormalization
TENSOR_NORMALIZATION_UNIT: TensorNormalization
TENSOR_NORMALIZATION_HALF: TensorNormalization
TENSOR_NORMALIZATION_IMAGENET: TensorNormalization
TENSOR_NORMALIZATION_CLIP: TensorNormalization
WARNING_CODE_UNSPECIFIED: WarningCode
WARNING_CODE_EXIF_IGNORED: WarningCode
WARNING_CODE_FIRST_IMAGE_ONLY: WarningCode
WARNING_CODE_DAMAGE_REPAIRED: WarningCode
WARNING_CODE_END_ADDED: WarningCode
WARNING_CODE_TRUNCATED: WarningCode
WARNING_CODE_PROFILE_IGNORED: WarningCode
WARNING_CODE_DAMAGED: WarningCode
WARNING_CODE_SCALE_FACTOR_IGNORED: WarningCode
WARNING_CODE_TARGET_SIMILARITY_IGNORED: WarningCode
WARNING_CODE_TARGET_SIMILARITY_MISSED: WarningCode
WARNING_CODE_SIZE_REDUCED: WarningCode
WARNING_CODE_QUALITY_REDUCED: WarningCode
WARNING_CODE_LARGER_THAN_IMAGE: WarningCode
WARNING_CODE_NEVER_LARGER_IGNORED: WarningCode
WARNING_CODE_FORMAT_CHANGED: WarningCode
WARNING_CODE_DAMAGE_TOLERATED: WarningCode
WARNING_CODE_ORIENTATION_IGNORED: WarningCode
WARNING_CODE_DAMAGE_UNCHECKED: WarningCode
WARNING_CODE_FRAMES_DROPPED: WarningCode
WARNING_CODE_CREDENTIALS_REMOVED: WarningCode
WARNING_CODE_COLOR_SPACE_CHANGED: WarningCode
WARNING_CODE_TRIM_IGNORED: WarningCode
WARNING_CODE_BIT_DEPTH_REDUCED: WarningCode
WARNING_CODE_FACES_NOT_FOUND: WarningCode
WARNING_CODE_FACES_CUT: WarningCode
WARNING_CODE_GAIN_MAP_REMOVED: WarningCode

class ProcessImageRequest(_message.Message):
    __slots__ = ("image", "preset", "configuration", "renditions", "preview", "auxiliary_images", "shared_memory")
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    RENDITIONS_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    AUXILIARY_IMAGES_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_FIELD_NUMBER: _ClassVar[int]
    image: bytes
    preset: str
    configuration: ProcessingConfiguration
    renditions: _containers.RepeatedCompositeFieldContainer[Rendition]
    preview: bool
    auxiliary_images: _containers.RepeatedCompositeFieldContainer[AuxiliaryImage]
    shared_memory: SharedMemory
    def __init__(self, image: _Optional[bytes] = ..., preset: _Optional[str] = ..., configuration: _Optional[_Union[ProcessingConfiguration, _Mapping]] = ..., renditions: _Optional[_Iterable[_Union[Rendition, _Mapping]]] = ..., preview: bool = ..., auxiliary_images: _Optional[_Iterable[_Union[AuxiliaryImage, _Mapping]]] = ..., shared_memory: _Optional[_Union[SharedMemory, _Mapping]] = ...) -> None: ...

class AuxiliaryImage(_message.Message):
    __slots__ = ("name", "image")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    image: bytes
    def __init__(self, name: _Optional[str] = ..., image: _Optional[bytes] = ...) -> None: ...

class Rendition(_message.Message):
    __slots__ = ("rendition_id", "preset", "configuration", "shared_memory")
    RENDITION_ID_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_FIELD_NUMBER: _ClassVar[int]
    rendition_id: str
    preset: str
    configuration: ProcessingConfiguration
    shared_memory: SharedMemory
    def __init__(self, rendition_id: _Optional[str] = ..., preset: _Optional[str] = ..., configuration: _Optional[_Union[ProcessingConfiguration, _Mapping]] = ..., shared_memory: _Optional[_Union[SharedMemory, _Mapping]] = ...) -> None: ...

class SharedMemory(_message.Message):
    __slots__ = ("name", "offset", "max_bytes", "token")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    offset: int
    max_bytes: int
    token: bytes
    def __init__(self, name: _Optional[str] = ..., offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., token: _Optional[bytes] = ...) -> None: ...

class ProcessImageResponse(_message.Message):
    __slots__ = ("header", "chunk", "report", "error", "rendition_id", "is_preview")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RENDITION_ID_FIELD_NUMBER: _ClassVar[int]
    IS_PREVIEW_FIELD_NUMBER: _ClassVar[int]
    header: ImageInfo
    chunk: bytes
    report: ProcessingReport
    error: _status_pb2.Status
    rendition_id: str
    is_preview: bool
    def __init__(self, header: _Optional[_Union[ImageInfo, _Mapping]] = ..., chunk: _Optional[bytes] = ..., report: _Optional[_Union[ProcessingReport, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., rendition_id: _Optional[str] = ..., is_preview: bool = ...) -> None: ...

class BatchProcessRequest(_message.Message):
    __slots__ = ("item_id", "start", "chunk", "end")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    start: BatchItemStart
    chunk: bytes
    end: BatchItemEnd
    def __init__(self, item_id: _Optional[str] = ..., start: _Optional[_Union[BatchItemStart, _Mapping]] = ..., chunk: _Optional[bytes] = ..., end: _Optional[_Union[BatchItemEnd, _Mapping]] = ...) -> None: ...

class BatchItemStart(_message.Message):
    __slots__ = ("preset", "configuration", "image", "renditions", "preview", "preview_key", "auxiliary_images", "shared_memory")
    PRESET_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    RENDITIONS_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_KEY_FIELD_NUMBER: _ClassVar[int]
    AUXILIARY_IMAGES_FIELD_NUMBER: _ClassVar[int]
    SHARED_MEMORY_FIELD_NUMBER: _ClassVar[int]
    preset: str
    configuration: ProcessingConfiguration
    image: bytes
    renditions: _containers.RepeatedCompositeFieldContainer[Rendition]
    preview: bool
    preview_key: str
    auxiliary_images: _containers.RepeatedCompositeFieldContainer[AuxiliaryImage]
    shared_memory: SharedMemory
    def __init__(self, preset: _Optional[str] = ..., configuration: _Optional[_Union[ProcessingConfiguration, _Mapping]] = ..., image: _Optional[bytes] = ..., renditions: _Optional[_Iterable[_Union[Rendition, _Mapping]]] = ..., preview: bool = ..., preview_key: _Optional[str] = ..., auxiliary_images: _Optional[_Iterable[_Union[AuxiliaryImage, _Mapping]]] = ..., shared_memory: _Optional[_Union[SharedMemory, _Mapping]] = ...) -> None: ...

class BatchItemEnd(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BatchProcessResponse(_message.Message):
    __slots__ = ("item_id", "header", "chunk", "report", "error", "rendition_id", "is_preview")
    ITEM_ID_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RENDITION_ID_FIELD_NUMBER: _ClassVar[int]
    IS_PREVIEW_FIELD_NUMBER: _ClassVar[int]
    item_id: str
    header: ImageInfo
    chunk: bytes
    report: ProcessingReport
    error: _status_pb2.Status
    rendition_id: str
    is_preview: bool
    def __init__(self, item_id: _Optional[str] = ..., header: _Optional[_Union[ImageInfo, _Mapping]] = ..., chunk: _Optional[bytes] = ..., report: _Optional[_Union[ProcessingReport, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., rendition_id: _Optional[str] = ..., is_preview: bool = ...) -> None: ...

class InspectImageRequest(_message.Message):
    __slots__ = ("image", "preset", "configuration", "facts", "auxiliary_images")
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    PRESET_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    AUXILIARY_IMAGES_FIELD_NUMBER: _ClassVar[int]
    image: bytes
    preset: str
    configuration: ProcessingConfiguration
    facts: bool
    auxiliary_images: _containers.RepeatedCompositeFieldContainer[AuxiliaryImage]
    def __init__(self, image: _Optional[bytes] = ..., preset: _Optional[str] = ..., configuration: _Optional[_Union[ProcessingConfiguration, _Mapping]] = ..., facts: bool = ..., auxiliary_images: _Optional[_Iterable[_Union[AuxiliaryImage, _Mapping]]] = ...) -> None: ...

class InspectImageResponse(_message.Message):
    __slots__ = ("info", "output", "decoded_bytes", "working_set_bytes", "warning_details", "facts")
    INFO_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    DECODED_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORKING_SET_BYTES_FIELD_NUMBER: _ClassVar[int]
    WARNING_DETAILS_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    info: ImageInfo
    output: ImageInfo
    decoded_bytes: int
    working_set_bytes: int
    warning_details: _containers.RepeatedCompositeFieldContainer[WarningDetail]
    facts: ImageFacts
    def __init__(self, info: _Optional[_Union[ImageInfo, _Mapping]] = ..., output: _Optional[_Union[ImageInfo, _Mapping]] = ..., decoded_bytes: _Optional[int] = ..., working_set_bytes: _Optional[int] = ..., warning_details: _Optional[_Iterable[_Union[WarningDetail, _Mapping]]] = ..., facts: _Optional[_Union[ImageFacts, _Mapping]] = ...) -> None: ...

class ListPresetsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPresetsResponse(_message.Message):
    __slots__ = ("presets",)
    PRESETS_FIELD_NUMBER: _ClassVar[int]
    presets: _containers.RepeatedCompositeFieldContainer[Preset]
    def __init__(self, presets: _Optional[_Iterable[_Union[Preset, _Mapping]]] = ...) -> None: ...

class Preset(_message.Message):
    __slots__ = ("name", "description", "configuration")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    configuration: ProcessingConfiguration
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., configuration: _Optional[_Union[ProcessingConfiguration, _Mapping]] = ...) -> None: ...

class ImageInfo(_message.Message):
    __slots__ = ("format", "width", "height", "orientation", "has_alpha", "bit_depth", "color_space", "frame_count", "duration", "play_count", "gamut", "tensor", "gain_map")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    ORIENTATION_FIELD_NUMBER: _ClassVar[int]
    HAS_ALPHA_FIELD_NUMBER: _ClassVar[int]
    BIT_DEPTH_FIELD_NUMBER: _ClassVar[int]
    COLOR_SPACE_FIELD_NUMBER: _ClassVar[int]
    FRAME_COUNT_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    PLAY_COUNT_FIELD_NUMBER: _ClassVar[int]
    GAMUT_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    GAIN_MAP_FIELD_NUMBER: _ClassVar[int]
    format: str
    width: int
    height: int
    orientation: int
    has_alpha: bool
    bit_depth: int
    color_space: str
    frame_count: int
    duration: _duration_pb2.Duration
    play_count: int
    gamut: str
    tensor: TensorInfo
    gain_map: GainMapInfo
    def __init__(self, format: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., orientation: _Optional[int] = ..., has_alpha: bool = ..., bit_depth: _Optional[int] = ..., color_space: _Optional[str] = ..., frame_count: _Optional[int] = ..., duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., play_count: _Optional[int] = ..., gamut: _Optional[str] = ..., tensor: _Optional[_Union[TensorInfo, _Mapping]] = ..., gain_map: _Optional[_Union[GainMapInfo, _Mapping]] = ...) -> None: ...

class GainMapInfo(_message.Message):
    __slots__ = ("kind", "width", "height", "headroom")
    KIND_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    HEADROOM_FIELD_NUMBER: _ClassVar[int]
    kind: str
    width: int
    height: int
    headroom: float
    def __init__(self, kind: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., headroom: _Optional[float] = ...) -> None: ...

class TensorInfo(_message.Message):
    __slots__ = ("element_type", "layout", "channels", "shape", "strides", "byte_order", "content")
    ELEMENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    STRIDES_FIELD_NUMBER: _ClassVar[int]
    BYTE_ORDER_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    element_type: TensorElementType
    layout: TensorLayout
    channels: TensorChannels
    shape: _containers.RepeatedScalarFieldContainer[int]
    strides: _containers.RepeatedScalarFieldContainer[int]
    byte_order: str
    content: PixelBox
    def __init__(self, element_type: _Optional[_Union[TensorElementType, str]] = ..., layout: _Optional[_Union[TensorLayout, str]] = ..., channels: _Optional[_Union[TensorChannels, str]] = ..., shape: _Optional[_Iterable[int]] = ..., strides: _Optional[_Iterable[int]] = ..., byte_order: _Optional[str] = ..., content: _Optional[_Union[PixelBox, _Mapping]] = ...) -> None: ...

class PixelBox(_message.Message):
    __slots__ = ("x", "y", "width", "height")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    x: int
    y: int
    width: int
    height: int
    def __init__(self, x: _Optional[int] = ..., y: _Optional[int] = ..., width: _Optional[int] = ..., height: _Optional[int] = ...) -> None: ...

class ProcessingConfiguration(_message.Message):
    __slots__ = ("max_width", "max_height", "compression_quality", "scale_factor", "preferred_format", "resize_mode", "allow_upscale", "gravity", "focus_point", "crop", "background", "max_bytes", "metadata", "filters", "jpeg", "png", "webp", "tolerate_truncation", "pad", "rotation", "flip_horizontal", "flip_vertical", "allow_smaller_dimensions", "always_encode", "tolerate_damage", "target_similarity", "never_larger", "frame_index", "max_frames", "resampling_kernel", "exact_resize", "color_space", "keep_exif", "keep_xmp", "keep_iptc", "keep_location", "keep_serial_numbers", "metadata_title", "metadata_copyright", "metadata_description", "resize_in_linear_light", "avif", "jxl", "accept", "auto_effort", "overlays", "zoom", "min_width", "min_height", "extend_aspect_ratio", "sharpen_reduced", "facts", "allow_lower_frame_rate", "tensor", "gain_map", "trim", "regions", "min_face_margin")
    MAX_WIDTH_FIELD_NUMBER: _ClassVar[int]
    MAX_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_QUALITY_FIELD_NUMBER: _ClassVar[int]
    SCALE_FACTOR_FIELD_NUMBER: _ClassVar[int]
    PREFERRED_FORMAT_FIELD_NUMBER: _ClassVar[int]
    RESIZE_MODE_FIELD_NUMBER: _ClassVar[int]
    ALLOW_UPSCALE_FIELD_NUMBER: _ClassVar[int]
    GRAVITY_FIELD_NUMBER: _ClassVar[int]
    FOCUS_POINT_FIELD_NUMBER: _ClassVar[int]
    CROP_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    JPEG_FIELD_NUMBER: _ClassVar[int]
    PNG_FIELD_NUMBER: _ClassVar[int]
    WEBP_FIELD_NUMBER: _ClassVar[int]
    TOLERATE_TRUNCATION_FIELD_NUMBER: _ClassVar[int]
    PAD_FIELD_NUMBER: _ClassVar[int]
    ROTATION_FIELD_NUMBER: _ClassVar[int]
    FLIP_HORIZONTAL_FIELD_NUMBER: _ClassVar[int]
    FLIP_VERTICAL_FIELD_NUMBER: _ClassVar[int]
    ALLOW_SMALLER_DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    ALWAYS_ENCODE_FIELD_NUMBER: _ClassVar[int]
    TOLERATE_DAMAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    NEVER_LARGER_FIELD_NUMBER: _ClassVar[int]
    FRAME_INDEX_FIELD_NUMBER: _ClassVar[int]
    MAX_FRAMES_FIELD_NUMBER: _ClassVar[int]
    RESAMPLING_KERNEL_FIELD_NUMBER: _ClassVar[int]
    EXACT_RESIZE_FIELD_NUMBER: _ClassVar[int]
    COLOR_SPACE_FIELD_NUMBER: _ClassVar[int]
    KEEP_EXIF_FIELD_NUMBER: _ClassVar[int]
    KEEP_XMP_FIELD_NUMBER: _ClassVar[int]
    KEEP_IPTC_FIELD_NUMBER: _ClassVar[int]
    KEEP_LOCATION_FIELD_NUMBER: _ClassVar[int]
    KEEP_SERIAL_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    METADATA_TITLE_FIELD_NUMBER: _ClassVar[int]
    METADATA_COPYRIGHT_FIELD_NUMBER: _ClassVar[int]
    METADATA_DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RESIZE_IN_LINEAR_LIGHT_FIELD_NUMBER: _ClassVar[int]
    AVIF_FIELD_NUMBER: _ClassVar[int]
    JXL_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    AUTO_EFFORT_FIELD_NUMBER: _ClassVar[int]
    OVERLAYS_FIELD_NUMBER: _ClassVar[int]
    ZOOM_FIELD_NUMBER: _ClassVar[int]
    MIN_WIDTH_FIELD_NUMBER: _ClassVar[int]
    MIN_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    EXTEND_ASPECT_RATIO_FIELD_NUMBER: _ClassVar[int]
    SHARPEN_REDUCED_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_LOWER_FRAME_RATE_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    GAIN_MAP_FIELD_NUMBER: _ClassVar[int]
    TRIM_FIELD_NUMBER: _ClassVar[int]
    REGIONS_FIELD_NUMBER: _ClassVar[int]
    MIN_FACE_MARGIN_FIELD_NUMBER: _ClassVar[int]
    max_width: int
    max_height: int
    compression_quality: float
    scale_factor: float
    preferred_format: OutputFormat
    resize_mode: ResizeMode
    allow_upscale: bool
    gravity: Gravity
    focus_point: Point
    crop: Rect
    background: Color
    max_bytes: int
    metadata: MetadataPolicy
    filters: _containers.RepeatedCompositeFieldContainer[Filter]
    jpeg: JPEGOptions
    png: PNGOptions
    webp: WebPOptions
    tolerate_truncation: bool
    pad: bool
    rotation: int
    flip_horizontal: bool
    flip_vertical: bool
    allow_smaller_dimensions: bool
    always_encode: bool
    tolerate_damage: bool
    target_similarity: float
    never_larger: bool
    frame_index: int
    max_frames: int
    resampling_kernel: ResamplingKernel
    exact_resize: bool
    color_space: ColorSpace
    keep_exif: bool
    keep_xmp: bool
    keep_iptc: bool
    keep_location: bool
    keep_serial_numbers: bool
    metadata_title: str
    metadata_copyright: str
    metadata_description: str
    resize_in_linear_light: bool
    avif: AVIFOptions
    jxl: JXLOptions
    accept: str
    auto_effort: AutoEffort
    overlays: _containers.RepeatedCompositeFieldContainer[Overlay]
    zoom: float
    min_width: int
    min_height: int
    extend_aspect_ratio: float
    sharpen_reduced: float
    facts: bool
    allow_lower_frame_rate: bool
    tensor: TensorOptions
    gain_map: GainMap
    trim: Trim
    regions: _containers.RepeatedCompositeFieldContainer[Region]
    min_face_margin: float
    def __init__(self, max_width: _Optional[int] = ..., max_height: _Optional[int] = ..., compression_quality: _Optional[float] = ..., scale_factor: _Optional[float] = ..., preferred_format: _Optional[_Union[OutputFormat, str]] = ..., resize_mode: _Optional[_Union[ResizeMode, str]] = ..., allow_upscale: bool = ..., gravity: _Optional[_Union[Gravity, str]] = ..., focus_point: _Optional[_Union[Point, _Mapping]] = ..., crop: _Optional[_Union[Rect, _Mapping]] = ..., background: _Optional[_Union[Color, _Mapping]] = ..., max_bytes: _Optional[int] = ..., metadata: _Optional[_Union[MetadataPolicy, str]] = ..., filters: _Optional[_Iterable[_Union[Filter, _Mapping]]] = ..., jpeg: _Optional[_Union[JPEGOptions, _Mapping]] = ..., png: _Optional[_Union[PNGOptions, _Mapping]] = ..., webp: _Optional[_Union[WebPOptions, _Mapping]] = ..., tolerate_truncation: bool = ..., pad: bool = ..., rotation: _Optional[int] = ..., flip_horizontal: bool = ..., flip_vertical: bool = ..., allow_smaller_dimensions: bool = ..., always_encode: bool = ..., tolerate_damage: bool = ..., target_similarity: _Optional[float] = ..., never_larger: bool = ..., frame_index: _Optional[int] = ..., max_frames: _Optional[int] = ..., resampling_kernel: _Optional[_Union[ResamplingKernel, str]] = ..., exact_resize: bool = ..., color_space: _Optional[_Union[ColorSpace, str]] = ..., keep_exif: bool = ..., keep_xmp: bool = ..., keep_iptc: bool = ..., keep_location: bool = ..., keep_serial_numbers: bool = ..., metadata_title: _Optional[str] = ..., metadata_copyright: _Optional[str] = ..., metadata_description: _Optional[str] = ..., resize_in_linear_light: bool = ..., avif: _Optional[_Union[AVIFOptions, _Mapping]] = ..., jxl: _Optional[_Union[JXLOptions, _Mapping]] = ..., accept: _Optional[str] = ..., auto_effort: _Optional[_Union[AutoEffort, str]] = ..., overlays: _Optional[_Iterable[_Union[Overlay, _Mapping]]] = ..., zoom: _Optional[float] = ..., min_width: _Optional[int] = ..., min_height: _Optional[int] = ..., extend_aspect_ratio: _Optional[float] = ..., sharpen_reduced: _Optional[float] = ..., facts: bool = ..., allow_lower_frame_rate: bool = ..., tensor: _Optional[_Union[TensorOptions, _Mapping]] = ..., gain_map: _Optional[_Union[GainMap, str]] = ..., trim: _Optional[_Union[Trim, _Mapping]] = ..., regions: _Optional[_Iterable[_Union[Region, _Mapping]]] = ..., min_face_margin: _Optional[float] = ...) -> None: ...

class Trim(_message.Message):
    __slots__ = ("threshold", "color", "equal_horizontal", "equal_vertical")
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    COLOR_FIELD_NUMBER: _ClassVar[int]
    EQUAL_HORIZONTAL_FIELD_NUMBER: _ClassVar[int]
    EQUAL_VERTICAL_FIELD_NUMBER: _ClassVar[int]
    threshold: int
    color: Color
    equal_horizontal: bool
    equal_vertical: bool
    def __init__(self, threshold: _Optional[int] = ..., color: _Optional[_Union[Color, _Mapping]] = ..., equal_horizontal: bool = ..., equal_vertical: bool = ...) -> None: ...

class Region(_message.Message):
    __slots__ = ("shape", "area", "effect", "color")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    AREA_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    COLOR_FIELD_NUMBER: _ClassVar[int]
    shape: RegionShape
    area: Rect
    effect: RegionEffect
    color: Color
    def __init__(self, shape: _Optional[_Union[RegionShape, str]] = ..., area: _Optional[_Union[Rect, _Mapping]] = ..., effect: _Optional[_Union[RegionEffect, str]] = ..., color: _Optional[_Union[Color, _Mapping]] = ...) -> None: ...

class Point(_message.Message):
    __slots__ = ("x", "y")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    x: float
    y: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ...) -> None: ...

class Rect(_message.Message):
    __slots__ = ("unit", "x", "y", "width", "height")
    UNIT_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    unit: RectUnit
    x: float
    y: float
    width: float
    height: float
    def __init__(self, unit: _Optional[_Union[RectUnit, str]] = ..., x: _Optional[float] = ..., y: _Optional[float] = ..., width: _Optional[float] = ..., height: _Optional[float] = ...) -> None: ...

class Color(_message.Message):
    __slots__ = ("red", "green", "blue")
    RED_FIELD_NUMBER: _ClassVar[int]
    GREEN_FIELD_NUMBER: _ClassVar[int]
    BLUE_FIELD_NUMBER: _ClassVar[int]
    red: int
    green: int
    blue: int
    def __init__(self, red: _Optional[int] = ..., green: _Optional[int] = ..., blue: _Optional[int] = ...) -> None: ...

class Filter(_message.Message):
    __slots__ = ("name", "intensity", "parameters")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    INTENSITY_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    intensity: float
    parameters: _containers.ScalarMap[str, float]
    def __init__(self, name: _Optional[str] = ..., intensity: _Optional[float] = ..., parameters: _Optional[_Mapping[str, float]] = ...) -> None: ...

class Overlay(_message.Message):
    __slots__ = ("image", "opacity", "scale", "width", "height", "gravity", "unit", "x", "y", "blend", "rotation", "tile", "text")
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    OPACITY_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    GRAVITY_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    BLEND_FIELD_NUMBER: _ClassVar[int]
    ROTATION_FIELD_NUMBER: _ClassVar[int]
    TILE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    image: str
    opacity: float
    scale: float
    width: int
    height: int
    gravity: Gravity
    unit: RectUnit
    x: float
    y: float
    blend: OverlayBlend
    rotation: int
    tile: bool
    text: TextOverlay
    def __init__(self, image: _Optional[str] = ..., opacity: _Optional[float] = ..., scale: _Optional[float] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., gravity: _Optional[_Union[Gravity, str]] = ..., unit: _Optional[_Union[RectUnit, str]] = ..., x: _Optional[float] = ..., y: _Optional[float] = ..., blend: _Optional[_Union[OverlayBlend, str]] = ..., rotation: _Optional[int] = ..., tile: bool = ..., text: _Optional[_Union[TextOverlay, _Mapping]] = ...) -> None: ...

class TextOverlay(_message.Message):
    __slots__ = ("text", "font", "size", "relative_size", "color", "outline_width", "outline_color", "box_color", "box_padding", "max_width", "alignment")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FONT_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    RELATIVE_SIZE_FIELD_NUMBER: _ClassVar[int]
    COLOR_FIELD_NUMBER: _ClassVar[int]
    OUTLINE_WIDTH_FIELD_NUMBER: _ClassVar[int]
    OUTLINE_COLOR_FIELD_NUMBER: _ClassVar[int]
    BOX_COLOR_FIELD_NUMBER: _ClassVar[int]
    BOX_PADDING_FIELD_NUMBER: _ClassVar[int]
    MAX_WIDTH_FIELD_NUMBER: _ClassVar[int]
    ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    text: str
    font: str
    size: float
    relative_size: float
    color: Color
    outline_width: float
    outline_color: Color
    box_color: Color
    box_padding: float
    max_width: float
    alignment: TextAlignment
    def __init__(self, text: _Optional[str] = ..., font: _Optional[str] = ..., size: _Optional[float] = ..., relative_size: _Optional[float] = ..., color: _Optional[_Union[Color, _Mapping]] = ..., outline_width: _Optional[float] = ..., outline_color: _Optional[_Union[Color, _Mapping]] = ..., box_color: _Optional[_Union[Color, _Mapping]] = ..., box_padding: _Optional[float] = ..., max_width: _Optional[float] = ..., alignment: _Optional[_Union[TextAlignment, str]] = ...) -> None: ...

class JPEGOptions(_message.Message):
    __slots__ = ("progressive", "chroma_subsampling", "optimize_huffman", "restart_rows")
    PROGRESSIVE_FIELD_NUMBER: _ClassVar[int]
    CHROMA_SUBSAMPLING_FIELD_NUMBER: _ClassVar[int]
    OPTIMIZE_HUFFMAN_FIELD_NUMBER: _ClassVar[int]
    RESTART_ROWS_FIELD_NUMBER: _ClassVar[int]
    progressive: bool
    chroma_subsampling: ChromaSubsampling
    optimize_huffman: bool
    restart_rows: int
    def __init__(self, progressive: bool = ..., chroma_subsampling: _Optional[_Union[ChromaSubsampling, str]] = ..., optimize_huffman: bool = ..., restart_rows: _Optional[int] = ...) -> None: ...

class PNGOptions(_message.Message):
    __slots__ = ("compression_level", "interlaced", "palette_colors", "filter", "bit_depth")
    COMPRESSION_LEVEL_FIELD_NUMBER: _ClassVar[int]
    INTERLACED_FIELD_NUMBER: _ClassVar[int]
    PALETTE_COLORS_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    BIT_DEPTH_FIELD_NUMBER: _ClassVar[int]
    compression_level: int
    interlaced: bool
    palette_colors: int
    filter: PNGFilter
    bit_depth: int
    def __init__(self, compression_level: _Optional[int] = ..., interlaced: bool = ..., palette_colors: _Optional[int] = ..., filter: _Optional[_Union[PNGFilter, str]] = ..., bit_depth: _Optional[int] = ...) -> None: ...

class WebPOptions(_message.Message):
    __slots__ = ("lossless", "near_lossless", "method", "sharp_chroma")
    LOSSLESS_FIELD_NUMBER: _ClassVar[int]
    NEAR_LOSSLESS_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    SHARP_CHROMA_FIELD_NUMBER: _ClassVar[int]
    lossless: bool
    near_lossless: int
    method: int
    sharp_chroma: bool
    def __init__(self, lossless: bool = ..., near_lossless: _Optional[int] = ..., method: _Optional[int] = ..., sharp_chroma: bool = ...) -> None: ...

class AVIFOptions(_message.Message):
    __slots__ = ("effort", "bit_depth")
    EFFORT_FIELD_NUMBER: _ClassVar[int]
    BIT_DEPTH_FIELD_NUMBER: _ClassVar[int]
    effort: int
    bit_depth: int
    def __init__(self, effort: _Optional[int] = ..., bit_depth: _Optional[int] = ...) -> None: ...

class JXLOptions(_message.Message):
    __slots__ = ("lossless", "effort", "bit_depth")
    LOSSLESS_FIELD_NUMBER: _ClassVar[int]
    EFFORT_FIELD_NUMBER: _ClassVar[int]
    BIT_DEPTH_FIELD_NUMBER: _ClassVar[int]
    lossless: bool
    effort: int
    bit_depth: int
    def __init__(self, lossless: bool = ..., effort: _Optional[int] = ..., bit_depth: _Optional[int] = ...) -> None: ...

class TensorOptions(_message.Message):
    __slots__ = ("element_type", "layout", "channels", "normalization", "scale", "mean", "standard_deviation")
    ELEMENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    NORMALIZATION_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    STANDARD_DEVIATION_FIELD_NUMBER: _ClassVar[int]
    element_type: TensorElementType
    layout: TensorLayout
    channels: TensorChannels
    normalization: TensorNormalization
    scale: float
    mean: _containers.RepeatedScalarFieldContainer[float]
    standard_deviation: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, element_type: _Optional[_Union[TensorElementType, str]] = ..., layout: _Optional[_Union[TensorLayout, str]] = ..., channels: _Optional[_Union[TensorChannels, str]] = ..., normalization: _Optional[_Union[TensorNormalization, str]] = ..., scale: _Optional[float] = ..., mean: _Optional[_Iterable[float]] = ..., standard_deviation: _Optional[_Iterable[float]] = ...) -> None: ...

class ProcessingReport(_message.Message):
    __slots__ = ("input", "output", "input_bytes", "output_bytes", "timings", "peak_memory_bytes", "warnings", "cache_hit", "passthrough", "trace_id", "compression_quality", "similarity", "warning_details", "format_trials", "crop", "hidden_regions", "facts", "faces", "gain_map_bytes")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    INPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    CACHE_HIT_FIELD_NUMBER: _ClassVar[int]
    PASSTHROUGH_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_QUALITY_FIELD_NUMBER: _ClassVar[int]
    SIMILARITY_FIELD_NUMBER: _ClassVar[int]
    WARNING_DETAILS_FIELD_NUMBER: _ClassVar[int]
    FORMAT_TRIALS_FIELD_NUMBER: _ClassVar[int]
    CROP_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_REGIONS_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    FACES_FIELD_NUMBER: _ClassVar[int]
    GAIN_MAP_BYTES_FIELD_NUMBER: _ClassVar[int]
    input: ImageInfo
    output: ImageInfo
    input_bytes: int
    output_bytes: int
    timings: StageTimings
    peak_memory_bytes: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    cache_hit: bool
    passthrough: bool
    trace_id: str
    compression_quality: float
    similarity: float
    warning_details: _containers.RepeatedCompositeFieldContainer[WarningDetail]
    format_trials: _containers.RepeatedCompositeFieldContainer[FormatTrial]
    crop: Rect
    hidden_regions: _containers.RepeatedCompositeFieldContainer[Rect]
    facts: ImageFacts
    faces: _containers.RepeatedCompositeFieldContainer[Rect]
    gain_map_bytes: int
    def __init__(self, input: _Optional[_Union[ImageInfo, _Mapping]] = ..., output: _Optional[_Union[ImageInfo, _Mapping]] = ..., input_bytes: _Optional[int] = ..., output_bytes: _Optional[int] = ..., timings: _Optional[_Union[StageTimings, _Mapping]] = ..., peak_memory_bytes: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ..., cache_hit: bool = ..., passthrough: bool = ..., trace_id: _Optional[str] = ..., compression_quality: _Optional[float] = ..., similarity: _Optional[float] = ..., warning_details: _Optional[_Iterable[_Union[WarningDetail, _Mapping]]] = ..., format_trials: _Optional[_Iterable[_Union[FormatTrial, _Mapping]]] = ..., crop: _Optional[_Union[Rect, _Mapping]] = ..., hidden_regions: _Optional[_Iterable[_Union[Rect, _Mapping]]] = ..., facts: _Optional[_Union[ImageFacts, _Mapping]] = ..., faces: _Optional[_Iterable[_Union[Rect, _Mapping]]] = ..., gain_map_bytes: _Optional[int] = ...) -> None: ...

class ImageFacts(_message.Message):
    __slots__ = ("thumb_hash", "blur_hash", "detailed_blur_hash", "mean_color", "dominant_colors", "perceptual_hash", "difference_hash", "is_opaque", "is_gray", "is_photographic")
    THUMB_HASH_FIELD_NUMBER: _ClassVar[int]
    BLUR_HASH_FIELD_NUMBER: _ClassVar[int]
    DETAILED_BLUR_HASH_FIELD_NUMBER: _ClassVar[int]
    MEAN_COLOR_FIELD_NUMBER: _ClassVar[int]
    DOMINANT_COLORS_FIELD_NUMBER: _ClassVar[int]
    PERCEPTUAL_HASH_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_HASH_FIELD_NUMBER: _ClassVar[int]
    IS_OPAQUE_FIELD_NUMBER: _ClassVar[int]
    IS_GRAY_FIELD_NUMBER: _ClassVar[int]
    IS_PHOTOGRAPHIC_FIELD_NUMBER: _ClassVar[int]
    thumb_hash: bytes
    blur_hash: str
    detailed_blur_hash: str
    mean_color: Color
    dominant_colors: _containers.RepeatedCompositeFieldContainer[DominantColor]
    perceptual_hash: int
    difference_hash: int
    is_opaque: bool
    is_gray: bool
    is_photographic: bool
    def __init__(self, thumb_hash: _Optional[bytes] = ..., blur_hash: _Optional[str] = ..., detailed_blur_hash: _Optional[str] = ..., mean_color: _Optional[_Union[Color, _Mapping]] = ..., dominant_colors: _Optional[_Iterable[_Union[DominantColor, _Mapping]]] = ..., perceptual_hash: _Optional[int] = ..., difference_hash: _Optional[int] = ..., is_opaque: bool = ..., is_gray: bool = ..., is_photographic: bool = ...) -> None: ...

class DominantColor(_message.Message):
    __slots__ = ("color", "share")
    COLOR_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    color: Color
    share: float
    def __init__(self, color: _Optional[_Union[Color, _Mapping]] = ..., share: _Optional[float] = ...) -> None: ...

class FormatTrial(_message.Message):
    __slots__ = ("format", "estimated_bytes", "compression_quality")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_BYTES_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_QUALITY_FIELD_NUMBER: _ClassVar[int]
    format: str
    estimated_bytes: int
    compression_quality: float
    def __init__(self, format: _Optional[str] = ..., estimated_bytes: _Optional[int] = ..., compression_quality: _Optional[float] = ...) -> None: ...

class WarningDetail(_message.Message):
    __slots__ = ("code", "message", "parameters")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    code: WarningCode
    message: str
    parameters: _containers.ScalarMap[str, str]
    def __init__(self, code: _Optional[_Union[WarningCode, str]] = ..., message: _Optional[str] = ..., parameters: _Optional[_Mapping[str, str]] = ...) -> None: ...

class StageTimings(_message.Message):
    __slots__ = ("queued", "decode", "resize", "filter", "encode", "total")
    QUEUED_FIELD_NUMBER: _ClassVar[int]
    DECODE_FIELD_NUMBER: _ClassVar[int]
    RESIZE_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ENCODE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    queued: _duration_pb2.Duration
    decode: _duration_pb2.Duration
    resize: _duration_pb2.Duration
    filter: _duration_pb2.Duration
    encode: _duration_pb2.Duration
    total: _duration_pb2.Duration
    def __init__(self, queued: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., decode: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., resize: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., filter: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., encode: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., total: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...
