"""The fields of a configuration, generated from image_worker.proto, which documents ranges and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


OutputFormat = Literal["original", "jpeg", "png", "webp", "avif", "gif", "jxl", "auto", "raw"]


ResizeMode = Literal["fit", "fill", "stretch"]


Gravity = Literal["center", "north", "north_east", "east", "south_east", "south", "south_west", "west", "north_west", "smart", "faces"]


class Point(TypedDict, total=False):
    """A point of the displayed image, measured from its top left corner."""

    # Fraction of the width, 0 to 1.
    x: float
    # Fraction of the height, 0 to 1.
    y: float


RectUnit = Literal["pixels", "fractions"]


class Rect(TypedDict, total=False):
    """A rectangle in the displayed image, measured from its top left corner."""

    # The unit of x, y, width and height.
    unit: RectUnit
    # Left edge, at least 0.
    x: float
    # Top edge, at least 0.
    y: float
    # Width, above 0.
    width: float
    # Height, above 0.
    height: float


class Color(TypedDict, total=False):
    """An opaque sRGB color."""

    # Red, 0 to 255.
    red: int
    # Green, 0 to 255.
    green: int
    # Blue, 0 to 255.
    blue: int


MetadataPolicy = Literal["strip", "keep_copyright", "keep_all", "selected"]


class Filter(TypedDict, total=False):
    """One filter of a chain."""

    # One of "grayscale", "sepia", "invert", "brightness", "contrast", "saturation", "hue", "gamma", "exposure", "tint",
    # "duotone", "vignette", "blur", "sharpen", "pixelate" and "threshold".
    name: str
    # From 0 (the image is unchanged) to 1 (the filter is fully applied).
    intensity: float
    # The filter's parameters by name, such as "radius".
    parameters: Mapping[str, float]


ChromaSubsampling = Literal["444", "422", "420"]


class JPEGOptions(TypedDict, total=False):
    """Options for JPEG results."""

    # Write a progressive file.
    progressive: bool
    # Size of the chroma planes.
    chroma_subsampling: ChromaSubsampling
    # Compute Huffman tables for the whole image.
    optimize_huffman: bool
    # Number of MCU rows between restart markers, 0 to 65535; 0 for no markers.
    restart_rows: int


PNGFilter = Literal["adaptive", "none", "sub", "up", "average", "paeth"]


class PNGOptions(TypedDict, total=False):
    """Options for PNG results."""

    # Compression level, from 0 (fastest) to 9 (smallest).
    compression_level: int
    # Write an interlaced file (Adam7).
    interlaced: bool
    # Maximum number of colors of a palette, 2 to 256, some of which may be transparent; 0 for no palette.
    palette_colors: int
    # Row filter.
    filter: PNGFilter
    # Bits per sample of an image that has more than 8: 8 or 16.
    bit_depth: int


class WebPOptions(TypedDict, total=False):
    """Options for WebP results."""

    # Write a lossless file; compression_quality is then ignored.
    lossless: bool
    # Near-lossless level, from 0 (smallest) to 100 (exact).
    near_lossless: int
    # Effort, from 0 (fastest) to 6 (smallest).
    method: int
    # Keep edges of strong colors sharp in a lossy file: the chroma planes, which are half as wide and high, are chosen
    # by the colors that viewers compute from them.
    sharp_chroma: bool


ResamplingKernel = Literal["lanczos3", "lanczos2", "mitchell", "bicubic", "bilinear", "box", "nearest"]


ColorSpace = Literal["srgb", "keep", "display_p3"]


class AVIFOptions(TypedDict, total=False):
    """Options for AVIF results."""

    # Effort, from 0 (fastest) to 9 (smallest).
    effort: int
    # As png.bit_depth, but 8 or 10.
    bit_depth: int


class JXLOptions(TypedDict, total=False):
    """Options for JPEG XL results."""

    # Write a lossless file; compression_quality is then ignored.
    lossless: bool
    # Effort, from 1 (fastest) to 9 (smallest).
    effort: int
    # As png.bit_depth.
    bit_depth: int


AutoEffort = Literal["low", "medium", "high"]


OverlayBlend = Literal["over", "multiply", "screen"]


TextAlignment = Literal["start", "center", "end"]


class TextOverlay(TypedDict, total=False):
    """A text that is drawn on the result, with the fonts of the worker."""

    # The text in UTF-8, 1 to 1000 bytes.
    text: str
    # Families of fonts, separated by commas, and a style, as in "DejaVu Sans Bold" or "Sans Italic".
    font: str
    # Size of the letters (of the font's em square) in pixels of the result, 1 to 4096.
    size: float
    # Size of the letters as a fraction of the result's height, above 0 and at most 1.
    relative_size: float
    # Color of the letters.
    color: Color
    # Width of the outline around letters as a fraction of their size, 0 to 0.5.
    outline_width: float
    # Color of the outline; needs outline_width.
    outline_color: Color
    # Color of a box behind the text.
    box_color: Color
    # Distance of the box's edges from the lines as a fraction of the letters' size, 0 to 4; needs box_color.
    box_padding: float
    # Maximum width of lines as a fraction of the result's width, above 0 and at most 1, or of its height if the overlay
    # is rotated by a quarter turn.
    max_width: float
    # Alignment of lines with each other.
    alignment: TextAlignment


class Overlay(TypedDict, total=False):
    """An image or a text that is drawn on the result, such as a logo or a watermark."""

    # The name of the image: that of one of auxiliary_images, or else of a file in the worker's directory (--overlays),
    # without its extension.
    image: str
    # Factor of the image's alpha, 0 to 1.
    opacity: float
    # Width of the overlay as a fraction of the result's width, above 0 and at most 1; the aspect ratio is kept.
    scale: float
    # Width of the overlay in pixels, 1 to 65500.
    width: int
    # Height of the overlay in pixels, 1 to 65500.
    height: int
    # The side or corner of the result to which the overlay is attached.
    gravity: Gravity
    # The unit of x and y: pixels, or fractions of the result's width and height.
    unit: RectUnit
    # Distance from the left or right edge that gravity names; otherwise from the center to the right.
    x: float
    # Distance from the top or bottom edge that gravity names; otherwise from the center downward.
    y: float
    # How colors are mixed.
    blend: OverlayBlend
    # Clockwise rotation of the image in degrees, before its size is set: 0, 90, 180 or 270.
    rotation: int
    # Repeat the overlay in both directions, from its place on, so that it covers the whole result.
    tile: bool
    # A text instead of an image.
    text: TextOverlay


TensorElementType = Literal["u8", "f16", "bf16", "f32"]


TensorLayout = Literal["hwc", "chw"]


TensorChannels = Literal["rgb", "bgr", "gray"]


TensorNormalization = Literal["none", "unit", "half", "imagenet", "clip"]


class TensorOptions(TypedDict, total=False):
    """Options for RAW results."""

    # The type of the elements.
    element_type: TensorElementType
    # The order of the dimensions.
    layout: TensorLayout
    # The channels and their order.
    channels: TensorChannels
    # The scale, mean and standard deviation, by name.
    normalization: TensorNormalization
    # The factor of samples, above 0 and at most 1000000.
    scale: float
    # What is subtracted from scaled samples, -1000000 to 1000000: one number, or one each for red, green and blue, in
    # this order also for BGR.
    mean: Sequence[float]
    # What the difference is divided by, 0.000001 to 1000000; as many numbers as mean.
    standard_deviation: Sequence[float]


GainMap = Literal["drop", "keep"]


class Trim(TypedDict, total=False):
    """The border to remove."""

    # The maximum difference from the color of the border, 0 to 255.
    threshold: int
    # The color of the border, as stored in the image.
    color: Color
    # Remove as much on the left as on the right: the smaller of both.
    equal_horizontal: bool
    # Remove as much at the top as at the bottom: the smaller of both.
    equal_vertical: bool


RegionShape = Literal["rectangle", "ellipse", "faces"]


RegionEffect = Literal["blur", "pixelate", "fill"]


class Region(TypedDict, total=False):
    """A part of the image to hide."""

    # The shape of the region.
    shape: RegionShape
    # The rectangle, or the one around the ellipse, in the displayed image as for `crop`.
    area: Rect
    # What the region shows instead.
    effect: RegionEffect
    # The color of FILL; gray images get its brightness, and CMYK images the closest color of a profile that defines it.
    color: Color


class Fields(TypedDict, total=False):
    """How to process an image."""

    # Maximum width of the result in pixels, 1 to 65500.
    max_width: int | None
    # Maximum height of the result in pixels, 1 to 65500.
    max_height: int | None
    # Quality of JPEG, AVIF, and lossy WebP and JPEG XL, from 0 (smallest) to 1 (best); ignored for other results.
    compression_quality: float | None
    # Divisor of max_width and max_height, at least 1: max_width 1280 with 2 gives 640.
    scale_factor: float | None
    # Format of the result.
    preferred_format: OutputFormat | None
    # How the image is resized to max_width and max_height.
    resize_mode: ResizeMode | None
    # Enlarge an image that is smaller than max_width and max_height.
    allow_upscale: bool | None
    # The part that FILL keeps, and the position of the image in its padding.
    gravity: Gravity | None
    # The point that FILL keeps in view, as fractions of the displayed image; overrides gravity.
    focus_point: Point | None
    # The part of the displayed image to use; applied before everything except rotation and flips.
    crop: Rect | None
    # Color behind transparency if the result has none, and of the padding.
    background: Color | None
    # Maximum size of the result in bytes, at least 1.
    max_bytes: int | None
    # The metadata to keep.
    metadata: MetadataPolicy | None
    # Filters, applied in this order after the resize; at most 32.
    filters: Sequence[Filter] | None
    # Options for JPEG results; ignored for other formats.
    jpeg: JPEGOptions | None
    # Options for PNG results; ignored for other formats.
    png: PNGOptions | None
    # Options for WebP results; ignored for other formats.
    webp: WebPOptions | None
    # Deliver a truncated image if at least one row was decoded: missing rows are gray, and the report contains a
    # warning.
    tolerate_truncation: bool | None
    # Extend the result to exactly max_width and max_height with the background.
    pad: bool | None
    # Rotate the image clockwise by 0, 90, 180 or 270 degrees.
    rotation: int | None
    # Swap left and right, after the rotation.
    flip_horizontal: bool | None
    # Swap top and bottom, after the rotation.
    flip_vertical: bool | None
    # Reduce the dimensions of the result if it does not fit in max_bytes otherwise; the aspect ratio is kept.
    allow_smaller_dimensions: bool | None
    # Decode and encode an image even if it already meets the configuration.
    always_encode: bool | None
    # Deliver a damaged image as far as it can be decoded: the rest is gray, and the report contains a warning with the
    # first damaged row.
    tolerate_damage: bool | None
    # Choose the lowest quality whose result is similar enough to its own uncompressed rows: a score of SSIMULACRA 2.1
    # from 30 (low quality) to 100 (no difference); 90 is visually lossless, 80 very high, 70 high and 50 medium
    # quality.
    target_similarity: float | None
    # Lower the quality of a result that would have more bytes than its image, although it shows the whole image without
    # enlarging or padding it.
    never_larger: bool | None
    # The frame of an animation that the result starts with, the page of a TIFF, or the image of an ICO from the largest
    # to the smallest, counted from 0; a negative index counts from the end, so that -1 is the last one.
    frame_index: int | None
    # Maximum number of frames of the result, from frame_index on; 0 for all of them, up to the limits of the worker
    # (max_animation_frames, max_animation_pixels).
    max_frames: int | None
    # The kernel with which the image is reduced and enlarged.
    resampling_kernel: ResamplingKernel | None
    # Resize to the samples that Pillow computes with the same kernel: decode the image at its full size, and resize its
    # red, green and blue horizontally, then vertically, rounded to 8 bits after each.
    exact_resize: bool | None
    # The color space of the result.
    color_space: ColorSpace | None
    # With metadata SELECTED: keep EXIF.
    keep_exif: bool | None
    # With metadata SELECTED: keep XMP.
    keep_xmp: bool | None
    # With metadata SELECTED: keep IPTC; only in JPEG results.
    keep_iptc: bool | None
    # With metadata SELECTED: keep the position (GPS) in EXIF and XMP.
    keep_location: bool | None
    # With metadata SELECTED: keep serial numbers of camera and lens, the owner and the image's identifier in EXIF and
    # XMP.
    keep_serial_numbers: bool | None
    # The title of the result, in XMP and, where it is kept, IPTC; up to 2000 bytes without control characters other
    # than tabs and line feeds.
    metadata_title: str | None
    # The copyright notice of the result, in XMP, EXIF and, where it is kept, IPTC; with the limits of metadata_title.
    metadata_copyright: str | None
    # The description of the result, in XMP, EXIF and, where it is kept, IPTC; with the limits of metadata_title.
    metadata_description: str | None
    # Mix pixels by the light that they stand for when the image is resized: samples are converted by the curve of sRGB,
    # resampled with alpha, and converted back.
    resize_in_linear_light: bool | None
    # Options for AVIF results; ignored for other formats.
    avif: AVIFOptions | None
    # Options for JPEG XL results; ignored for other formats.
    jxl: JXLOptions | None
    # The formats among which AUTO chooses, as in "avif,webp,jpeg", or as a browser's Accept header has them, as in
    # "image/avif,image/webp,*/*;q=0.8", in which "*/*" and "image/*" stand for JPEG and PNG.
    accept: str | None
    # The time that AUTO may take for a smaller result.
    auto_effort: AutoEffort | None
    # Images and texts that are drawn on the result, in this order, after filters, orientation and padding; at most 8.
    overlays: Sequence[Overlay] | None
    # Multiplier of max_width, max_height, min_width and min_height, 0.1 to 8: max_width 640 with 2 gives 1280.
    zoom: float | None
    # Minimum width of the result in pixels, 1 to 65500.
    min_width: int | None
    # Minimum height of the result in pixels, 1 to 65500; see min_width.
    min_height: int | None
    # Extend the result to this ratio of width to height, 0.1 to 10, with the background: 1 makes a square, 1.7778 is
    # 16:9.
    extend_aspect_ratio: float | None
    # Sharpen an image that is reduced, the more the larger the reduction: 0 to 2.
    sharpen_reduced: float | None
    # Report the facts of the image: see ImageFacts.
    facts: bool | None
    # Leave out frames of an animation that does not fit in max_bytes otherwise: every second one, or up to seven of
    # eight.
    allow_lower_frame_rate: bool | None
    # The elements of RAW results; ignored for other formats.
    tensor: TensorOptions | None
    # The HDR gain map of a JPEG, HEIC or AVIF (Ultra HDR, ISO 21496-1, and those of Apple), from which viewers brighten
    # the image on HDR displays.
    gain_map: GainMap | None
    # Remove the uniform border of the displayed image, of the part that `crop` leaves; everything else refers to what
    # is left.
    trim: Trim | None
    # Parts of the displayed image to hide, in their order, at most 100; applied to the pixels of the image before
    # everything else.
    regions: Sequence[Region] | None
    # With GRAVITY_FACES, keep this much around each face if it fits, as a fraction of the face's height: between 0 and
    # 2.
    min_face_margin: float | None
