"""Runs one Python library in a separate process: peer_python.py LIBRARY IMAGE JOB-AS-JSON.

It prints its version on a line when it is ready. Each line of its input is either "save PATH" or the number of times to
process the image, from compressed bytes in memory to compressed bytes in memory; it answers each with a line. It uses
one thread. Each library is used as its manual recommends for thumbnails: shrinking on load, then its best kernel.
"""

import io
import json
import sys


def pyvips_peer():
    import pyvips

    pyvips.cache_set_max(0)

    def process(data, job):
        image = pyvips.Image.thumbnail_buffer(data, job["width"], height=job["height"], size="down")
        quality = {"jpeg": f"Q={job['quality']},background=255", "webp": f"Q={job['quality']}", "png": "compression=6"}
        return image.write_to_buffer(f".{job['format']}[{quality[job['format']]},keep=none]")

    return "libvips " + ".".join(str(pyvips.version(i)) for i in range(3)), process


def pillow_peer():
    import PIL
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None

    def process(data, job):
        image = Image.open(io.BytesIO(data))
        image.thumbnail((job["width"], job["height"]), Image.Resampling.LANCZOS, reducing_gap=2.0)
        if job["format"] == "jpeg" and image.mode == "RGBA":
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
        options = {
            "jpeg": {"quality": job["quality"], "subsampling": "4:4:4" if job["quality"] >= 90 else "4:2:0"},
            "webp": {"quality": job["quality"]},
            "png": {"compress_level": 6},
        }
        out = io.BytesIO()
        image.save(out, job["format"], **options[job["format"]])
        return out.getbuffer()

    return PIL.__version__, process


def opencv_peer():
    import cv2
    import numpy as np

    cv2.setNumThreads(1)
    reduced = {8: cv2.IMREAD_REDUCED_COLOR_8, 4: cv2.IMREAD_REDUCED_COLOR_4, 2: cv2.IMREAD_REDUCED_COLOR_2}

    def decode(data, job):
        """Decodes, JPEG at reduced size; the job has the image's size, which OpenCV reports only after decoding."""
        buffer = np.frombuffer(data, np.uint8)
        if data[:2] != b"\xff\xd8":
            return cv2.imdecode(buffer, cv2.IMREAD_UNCHANGED)
        width, height = job["input_size"]
        ratio = max(width / job["width"], height / job["height"])
        fitting = [flag for by, flag in reduced.items() if by <= ratio]
        return cv2.imdecode(buffer, fitting[0] if fitting else cv2.IMREAD_COLOR)

    def process(data, job):
        image = decode(data, job)
        height, width = image.shape[:2]
        scale = min(job["width"] / width, job["height"] / height, 1)
        if scale < 1:
            size = max(round(width * scale), 1), max(round(height * scale), 1)
            image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
        if job["format"] == "jpeg" and image.shape[2] == 4:
            alpha = image[:, :, 3:].astype(np.float32) / 255
            image = (image[:, :, :3] * alpha + 255 * (1 - alpha)).round().astype(np.uint8)
        is_fine = job["quality"] >= 90
        sampling = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444 if is_fine else cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420
        options = {
            "jpeg": [cv2.IMWRITE_JPEG_QUALITY, job["quality"], cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling],
            "webp": [cv2.IMWRITE_WEBP_QUALITY, job["quality"]],
            "png": [cv2.IMWRITE_PNG_COMPRESSION, 6],
        }
        return cv2.imencode("." + job["format"], image, options[job["format"]])[1]

    return cv2.__version__, process


def resizer_peer():
    """fast_image_resize between libjpeg-turbo's decoder and encoder; Pillow reads and writes other formats."""
    import importlib.metadata

    import numpy as np
    import simplejpeg
    from cykooz_resizer import FilterType, ResizeAlg, Resizer, ResizeOptions
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    resizer, options = Resizer(), ResizeOptions(resize_alg=ResizeAlg.convolution(FilterType.lanczos3))

    def decode(data, job):
        """Decodes, JPEG at the least reduced size that is not below the result's."""
        if data[:2] != b"\xff\xd8":
            return Image.open(io.BytesIO(data))
        width, height = job["input_size"]
        scale = min(job["width"] / width, job["height"] / height, 1)
        return Image.fromarray(simplejpeg.decode_jpeg(
            data, "RGB", min_width=max(round(width * scale), 1), min_height=max(round(height * scale), 1), min_factor=1))

    def process(data, job):
        image = decode(data, job)
        scale = min(job["width"] / image.width, job["height"] / image.height, 1)
        if scale < 1:
            size = max(round(image.width * scale), 1), max(round(image.height * scale), 1)
            smaller = Image.new(image.mode, size)
            resizer.resize_pil(image, smaller, options)
            image = smaller
        if job["format"] == "jpeg":
            if image.mode == "RGBA":
                image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
            rows = np.ascontiguousarray(image.convert("RGB"))
            sampling = "444" if job["quality"] >= 90 else "420"
            return simplejpeg.encode_jpeg(rows, job["quality"], "RGB", sampling)
        out = io.BytesIO()
        image.save(out, job["format"], **({"quality": job["quality"]} if job["format"] == "webp" else {"compress_level": 6}))
        return out.getbuffer()

    return importlib.metadata.version("cykooz.resizer") + ", simplejpeg " + simplejpeg.__version__, process


def main() -> None:
    peers = {"pyvips": pyvips_peer, "pillow": pillow_peer, "opencv": opencv_peer, "resizer": resizer_peer}
    version, process = peers[sys.argv[1]]()
    print(version, flush=True)
    job, data, result = json.loads(sys.argv[3]), None, b""
    for line in sys.stdin:
        command, _, path = line.strip().partition(" ")
        if command == "save":
            with open(path, "wb") as file:
                file.write(result)
        else:
            if data is None:
                with open(sys.argv[2], "rb") as file:
                    data = file.read()
            for _ in range(int(command)):
                result = process(data, job)
        print("done", flush=True)


if __name__ == "__main__":
    main()
