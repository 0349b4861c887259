import Fields
import ImageCodecs
import ImageKernels
import TestSupport
import Testing

@testable import ImagePipeline

/// Texts on results, in DejaVu, which `deploy/setup.sh` installs.
@Suite(
  "Text overlays",
  .enabled(if: TextFonts.isSupported && TextFonts() != nil, "this build or this machine draws no texts"))
struct TextOverlayTests {
  private typealias Picture = OverlayPicture

  private static let blue: [UInt8] = [0, 0, 255]
  private static let canvas = Picture.plain(300, 200, blue)
  private static let red = Color(red: 255, green: 0, blue: 0)

  private static func draw(
    _ text: TextOverlay, on canvas: OverlayPicture = canvas, _ change: (inout Overlay) -> Void = { _ in }
  ) throws -> OverlayPicture {
    var overlay = Overlay(image: "", gravity: .northWest, text: text)
    change(&overlay)
    let configuration = ProcessingConfiguration(preferredFormat: .png, overlays: [overlay])
    return try OverlayPicture(decoding: process(try canvas.png, configuration).bytes)
  }

  /// The smallest rectangle around all pixels that are not blue, as left, top, right and bottom; `nil` if there are none.
  private static func ink(_ picture: OverlayPicture, rows: Range<Int>? = nil) -> [Int]? {
    var (columns, lines): ([Int], [Int]) = ([], [])
    for y in rows ?? 0..<picture.height {
      for x in 0..<picture.width where picture.pixel(x, y) != blue {
        columns.append(x)
        lines.append(y)
      }
    }
    guard let left = columns.min(), let right = columns.max(), let top = lines.min(), let bottom = lines.max() else {
      return nil
    }
    return [left, top, right + 1, bottom + 1]
  }

  private static func count(_ pixel: [UInt8], in picture: OverlayPicture) -> Int {
    (0..<picture.width * picture.height).count { picture.pixel($0 % picture.width, $0 / picture.width) == pixel }
  }

  // MARK: Pixels

  @Test("change pixels inside their box only, to their color")
  func place() throws {
    let text = TextOverlay(text: "Hello", font: "DejaVu Sans", size: 40, boxColor: Color(red: 0, green: 255, blue: 0))
    let drawn = try Self.draw(text) {
      $0.x = 20
      $0.y = 30
    }
    let fonts = try #require(TextFonts())
    var style = TextStyle(text: "Hello", font: "DejaVu Sans", size: 40, maxWidth: 300)
    style.box = TextStyle.Box(color: SIMD3(0, 255, 0), padding: 10)
    let (width, height) = try fonts.size(of: style)
    // Letters of 40 pixels, with 10 around them.
    #expect((100...140).contains(width) && (60...75).contains(height))
    #expect(Self.ink(drawn) == [20, 30, 20 + width, 30 + height])
    #expect(drawn.pixel(20, 30) == [0, 255, 0] && drawn.pixel(20 + width - 1, 30 + height - 1) == [0, 255, 0])
    #expect(Self.count([255, 255, 255], in: drawn) > 200)
  }

  @Test("are as large as they say, in pixels and as a part of the height")
  func size() throws {
    func height(_ text: TextOverlay, on canvas: OverlayPicture = Self.canvas) throws -> Int {
      let ink = try #require(Self.ink(try Self.draw(text, on: canvas)))
      return ink[3] - ink[1]
    }
    // The height of a capital letter of DejaVu Sans is 0.73 of its size.
    let exact = try height(TextOverlay(text: "H", font: "DejaVu Sans", size: 100))
    #expect((72...75).contains(exact))
    #expect(try height(TextOverlay(text: "H", font: "DejaVu Sans", relativeSize: 0.5)) == exact)
    let usual = try height(TextOverlay(text: "H", font: "DejaVu Sans"))
    #expect((7...9).contains(usual))
    let double = try height(TextOverlay(text: "H", relativeSize: 0.5), on: Picture.plain(600, 400, Self.blue))
    #expect(abs(double - 2 * exact) <= 2)
  }

  @Test("are wrapped at their width, between words or else between letters")
  func wrapping() throws {
    let text = "one two three four"
    let whole = try #require(Self.ink(try Self.draw(TextOverlay(text: text, size: 20))))
    for (text, minimum) in [(text, 3), (text.replacing(" ", with: ""), 3)] {
      let wrapped = try #require(Self.ink(try Self.draw(TextOverlay(text: text, size: 20, maxWidth: 0.25))))
      #expect(wrapped[2] <= 75 && wrapped[3] >= whole[3] + (minimum - 1) * 20, "\(text): \(wrapped), \(whole)")
    }
    let lines = try #require(Self.ink(try Self.draw(TextOverlay(text: "a\nb\nc", size: 20))))
    #expect(lines[3] >= 3 * 20 && lines[2] < 20)
  }

  @Test("from right to left begin on the right")
  func rightToLeft() throws {
    func secondLine(_ text: String, _ alignment: TextStyle.Alignment? = nil) throws -> (left: Int, right: Int) {
      let drawn = try Self.draw(TextOverlay(text: text, font: "DejaVu Sans", size: 30, alignment: alignment))
      let all = try #require(Self.ink(drawn))
      let last = try #require(Self.ink(drawn, rows: (all[3] - 15)..<200))
      return (last[0] - all[0], all[2] - last[2])
    }
    let hebrew = try secondLine("אבגדהוזחט\nאב")
    #expect(hebrew.left > 60 && hebrew.right < 6, "\(hebrew)")
    let latin = try secondLine("abcdefghi\nac")
    #expect(latin.left < 6 && latin.right > 60, "\(latin)")
    let centered = try secondLine("abcdefghi\nac", .center)
    #expect(abs(centered.left - centered.right) < 6)
    let ending = try secondLine("abcdefghi\nac", .end)
    #expect(ending.left > 60 && ending.right < 6)
    // The first letter is on the right: that of both alone is where the first of two is.
    let two = try Self.draw(TextOverlay(text: "וש", font: "DejaVu Sans", size: 60))
    let ink = try #require(Self.ink(two))
    let columns = (ink[0]..<ink[2]).map { x in (0..<200).count { two.pixel(x, $0) != Self.blue } }
    // Vav is one stroke, shin is wide.
    let narrow = columns.reversed().prefix { $0 > 0 }.count
    let wide = columns.prefix { $0 > 0 }.count
    #expect(narrow < wide, "\(columns)")
  }

  @Test("of both directions are as wide as their longest line")
  func mixedDirections() throws {
    let text = TextOverlay(text: "hello world\nשלום", font: "DejaVu Sans", size: 20)
    let both = try #require(try Self.ink(Self.draw(text)))
    let one = try #require(try Self.ink(Self.draw(TextOverlay(text: "hello world", font: "DejaVu Sans", size: 20))))
    #expect(abs(both[2] - both[0] - (one[2] - one[0])) <= 2 && both[3] > one[3])
  }

  @Test("have an outline, and a box behind it")
  func outline() throws {
    let plain = try #require(Self.ink(try Self.draw(TextOverlay(text: "Hi", size: 50)) { $0.x = 50 }))
    let outlined = try Self.draw(TextOverlay(text: "Hi", size: 50, outlineWidth: 0.1, outlineColor: Self.red)) {
      $0.x = 50
    }
    let around = try #require(Self.ink(outlined))
    #expect(Self.count([255, 0, 0], in: outlined) > 500 && Self.count([255, 255, 255], in: outlined) > 300)
    // Five pixels on both sides.
    #expect((9...11).contains((around[2] - around[0]) - (plain[2] - plain[0])))
    let boxed = try Self.draw(TextOverlay(text: "Hi", size: 50, outlineWidth: 0.1, boxColor: Self.red, boxPadding: 0.5))
    #expect(boxed.pixel(0, 0) == [255, 0, 0])
    #expect(Self.count([0, 0, 0], in: boxed) > 500 && Self.count([255, 255, 255], in: boxed) > 300)
  }

  @Test("are rotated, transparent, tiled and blended as images are")
  func sameAsImages() throws {
    let text = TextOverlay(text: "R", font: "DejaVu Sans", size: 40, color: Self.red)
    let upright = try Self.draw(text)
    let box = try #require(Self.ink(upright))
    let rotated = try Self.draw(text) {
      $0.rotation = 90
      $0.gravity = .northEast
    }
    // The left side is on top, and the top on the right.
    for (x, y) in [(box[0], box[1]), ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2), (box[2] - 1, box[3] - 1)] {
      let (one, other) = (upright.pixel(x, y), rotated.pixel(300 - 1 - y, x))
      #expect(zip(one, other).allSatisfy { abs(Int($0) - Int($1)) <= 20 }, "\(x), \(y): \(one), \(other)")
    }
    let faint = try Self.draw(text) { $0.opacity = 0.5 }
    #expect(Self.count([128, 0, 127], in: faint) == Self.count([255, 0, 0], in: upright))
    let tiled = try Self.draw(text) { $0.tile = true }
    #expect(Self.count([255, 0, 0], in: tiled) > 10 * Self.count([255, 0, 0], in: upright))
    let screened = try Self.draw(text) { $0.blend = .screen }
    #expect(Self.count([255, 0, 255], in: screened) == Self.count([255, 0, 0], in: upright))
  }

  @Test("are drawn as they are, without markup, in the style that is named")
  func plainText() throws {
    func width(_ text: String, _ font: String) throws -> Int {
      let ink = try #require(Self.ink(try Self.draw(TextOverlay(text: text, font: font, size: 20))))
      return ink[2] - ink[0]
    }
    #expect(try width("<b>a</b>", "DejaVu Sans") > 3 * width("a", "DejaVu Sans"))
    #expect(try width("&amp;", "DejaVu Sans") > 2 * width("&", "DejaVu Sans"))
    #expect(try width("wide", "DejaVu Sans Bold") > width("wide", "DejaVu Sans"))
    #expect(try width("iiiiii", "DejaVu Sans Mono") > width("iiiiii", "dejavu sans"))
    #expect(try width("iiiiii", "No such family, DejaVu Sans Mono") == width("iiiiii", "DejaVu Sans Mono"))
    // Letters of a script that the monospaced font lacks come from others.
    #expect(try width("אבג", "DejaVu Sans Mono") > 20)
  }

  @Test("are smaller on previews")
  func preview() throws {
    let image = try Picture.plain(1200, 600, Self.blue).png
    var text = Overlay(image: "", gravity: .southEast, text: TextOverlay(text: "Hello", size: 120))
    text.x = 40
    var reader = ImageReader(limits: ImageLimits())
    let consumed = try reader.push(image.span.bytes, isLast: true).consumedByteCount
    let plan = try reader.previewPlan(ProcessingConfiguration(overlays: [text]))
    let route = try reader.takeRoute(plan, cancellation: Cancellation())
    var output: [UInt8] = []
    let isDone = try route.push(image.span.bytes.extracting(consumed..<image.count), isLast: true) { _, bytes in
      bytes.withUnsafeBytes { output.append(contentsOf: $0) }
    }
    #expect(isDone)
    let pixels = try Pixels.decode(output)
    let whites = (0..<300 * 150).filter { pixels.color(x: $0 % 300, y: $0 / 300)[0] > 128 }
    // 30 pixels high, ten from the right edge.
    #expect(!whites.isEmpty && whites.allSatisfy { (195..<292).contains($0 % 300) && $0 / 300 > 105 })
  }

  @Test("have the colors of the result")
  func colors() throws {
    let overlay = Overlay(
      image: "", gravity: .northWest, text: TextOverlay(text: "a", size: 40, boxColor: Self.red, boxPadding: 1))
    let configuration = ProcessingConfiguration(preferredFormat: .png, colorSpace: .displayP3, overlays: [overlay])
    let pixel = try Picture(decoding: process(try Self.canvas.png, configuration).bytes).pixel(0, 0)
    // Red of sRGB in Display P3.
    #expect(abs(Int(pixel[0]) - 234) <= 2 && abs(Int(pixel[1]) - 51) <= 3 && abs(Int(pixel[2]) - 35) <= 3, "\(pixel)")
  }

  // MARK: Limits

  private static let wrong: [(overlay: Overlay, field: String, code: PipelineError.Code)] = [
    (Overlay(image: "", text: TextOverlay(text: "")), "text.text", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: String(repeating: "a", count: 1001))), "text.text", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a\tb")), "text.text", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a\0b")), "text.text", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a\u{85}b")), "text.text", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a", font: "")), "text.font", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a", font: "No such family")), "text.font", .invalidField),
    (
      Overlay(image: "", text: TextOverlay(text: "a", font: "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")),
      "text.font",
      .invalidField
    ),
    (Overlay(image: "", text: TextOverlay(text: "a", font: "DejaVu Sans 12")), "text.font", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a", font: "DejaVu Sans @wght=200")), "text.font", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a", size: 0)), "text.size", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a", size: 5000)), "text.size", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a", size: 10, relativeSize: 0.1)), "text.size", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a", outlineColor: red)), "text.outline_color", .invalidField),
    (Overlay(image: "", text: TextOverlay(text: "a", boxPadding: 0.1)), "text.box_padding", .invalidField),
    (Overlay(image: "logo", text: TextOverlay(text: "a")), "image", .invalidField),
    (Overlay(image: "", scale: 0.5, text: TextOverlay(text: "a")), "scale", .invalidField),
    (Overlay(image: "", width: 5, text: TextOverlay(text: "a")), "width", .invalidField),
    (Overlay(image: "", height: 5, text: TextOverlay(text: "a")), "height", .invalidField),
    (
      Overlay(image: "", text: TextOverlay(text: String(repeating: "a\n", count: 400), size: 200)), "text",
      .limitExceeded
    ),
  ]

  /// Checks a configuration as that of a request is checked.
  private static func check(_ configuration: ProcessingConfiguration) throws(PipelineError) {
    do throws(FieldError) { _ = try ProcessingConfiguration(configuration.fieldValue, field: "") } catch {
      throw PipelineError(error)
    }
    try configuration.validateCombination()
  }

  @Test("that cannot be drawn are errors that name the field", arguments: wrong.indices)
  func errors(index: Int) throws {
    let (overlay, field, code) = Self.wrong[index]
    let configuration = ProcessingConfiguration(preferredFormat: .png, overlays: [overlay])
    let error = #expect(throws: PipelineError.self) {
      try Self.check(configuration)
      _ = try process(try Self.canvas.png, configuration)
    }
    let path = "overlays[0].\(field)"
    #expect(
      error?.code == code && error?.field == path && error?.message.contains(path) == true,
      "\(String(describing: error))")
  }

  @Test("of more pixels than the memory has room for are refused before they are drawn")
  func memory() throws {
    // Sixty lines of one letter, which are 25 MB.
    let overlay = Overlay(image: "", text: TextOverlay(text: String(repeating: "W ", count: 60), size: 300))
    let configuration = ProcessingConfiguration(preferredFormat: .png, overlays: [overlay])
    let image = try Self.canvas.png
    for (limits, name) in [
      (ImageLimits(memory: 16 << 20), "image_memory_limit"), (ImageLimits(maxWorkPixels: 1_000_000), "max_work_pixels"),
    ] {
      let error = #expect(throws: PipelineError.self) { try process(image, configuration, limits: limits) }
      #expect(error?.code == .limitExceeded && error?.limit?.name == name, "\(String(describing: error))")
    }
    _ = try process(image, configuration)
  }

  @Test("are part of the working set: never less than is used, and at most twice as much")
  func workingSet() throws {
    for (size, rotation) in [(10.0, 0), (60, 0), (300, 90)] {
      let text = TextOverlay(text: "Working set", size: size, outlineWidth: 0.1, boxColor: Self.red)
      let configuration = ProcessingConfiguration(
        maxWidth: 200, compressionQuality: 0.8, preferredFormat: .jpeg,
        overlays: [Overlay(image: "", rotation: rotation, text: text)])
      let image = Fixture.bytes("photo-444.jpg")
      var reader = ImageReader(limits: ImageLimits())
      _ = try reader.push(image.span.bytes, isLast: true)
      let estimate = try reader.plan(configuration).workingSetByteCount
      let peak = try process(image, configuration).report.peakMemoryByteCount
      #expect(peak <= estimate && estimate <= 2 * peak + 64 * 1024, "\(size): \(peak), expected \(estimate)")
    }
  }

  @Test("end when their image does")
  func interruption() throws {
    let fonts = try #require(TextFonts())
    let style = TextStyle(text: "abc", font: "Sans", size: 20, maxWidth: 100)
    var count = 0
    #expect(throws: TextError.interrupted) {
      try fonts.pixels(style, opacity: 1) {
        count += 1
        return count > 2
      }
    }
    #expect(count == 3)
  }

  @Test("are equal on all threads, and whether they were drawn before or not")
  func threads() async throws {
    let cache = OverlayCache()
    let configuration = ProcessingConfiguration(
      preferredFormat: .png, overlays: [Overlay(image: "", text: TextOverlay(text: "Threads שלום\nمرحبا", size: 25))])
    let image = try Self.canvas.png
    let results = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for index in 0..<16 {
        group.addTask {
          let auxiliary = AuxiliaryImages([], cache: index % 2 == 0 ? cache : nil)
          return try process(image, configuration, auxiliary: auxiliary).bytes
        }
      }
      return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    #expect(results.count == 1 && cache.byteCount > 0)
  }

  @Test("are read from the command line")
  func commandLine() throws {
    let overlay = try Overlay(
      text:
        #"text=One\, two\nthree=3,font=Sans Bold,size=24,color=#f00,outline-width=0.1,box-color=#000000,max-width=0.5,alignment=center,x=3,tile"#,
      field: "--overlay")
    #expect(
      overlay
        == Overlay(
          image: "", x: 3, tile: true,
          text: TextOverlay(
            text: "One, two\nthree=3", font: "Sans Bold", size: 24, color: Self.red, outlineWidth: 0.1,
            boxColor: Color(red: 0, green: 0, blue: 0), maxWidth: 0.5, alignment: .center)))
    // A combining mark is part of the text, and not of what precedes it.
    let marked = try Overlay(text: "text=\u{301}a\\,\u{302}\\n\u{303},font=\u{304}", field: "--overlay")
    #expect(marked.text.map { Array($0.text.unicodeScalars) } == Array("\u{301}a,\u{302}\n\u{303}".unicodeScalars))
    #expect(marked.text?.font == "\u{304}")
    for wrong in ["text=a,size=0", "text=a,sizes=3", "text=a,color=red", "logo,font=Sans", "text=a\u{7}"] {
      #expect(throws: (any Error).self, "\(wrong)") { try Overlay(text: wrong, field: "--overlay") }
    }
  }
}

@Suite("Text overlays of a build without Pango", .enabled(if: !TextFonts.isSupported, "this build draws texts"))
struct MissingTextOverlayTests {
  @Test("are refused as what this worker does not offer")
  func refusal() {
    let configuration = ProcessingConfiguration(overlays: [Overlay(image: "", text: TextOverlay(text: "a"))])
    let error = #expect(throws: PipelineError.self) { try configuration.validate() }
    #expect(error?.code == .unservedField && error?.field == "overlays[0].text")
  }
}
