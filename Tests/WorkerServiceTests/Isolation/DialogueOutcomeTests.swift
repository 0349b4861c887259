import ImagePipeline
import Testing

@testable import WorkerService

/// Which output, outcomes and files the account of a dialogue accepts, in the same way.
@Suite("Results in the account of a dialogue")
struct DialogueOutcomeTests {
  @Test("output belongs to a rendition that has not ended, and has bytes")
  func segments() {
    let account = Dialogue.account([Dialogue.planned(), Dialogue.refused])
    #expect(Dialogue.accepts(account, Dialogue.output((0, 1))))
    for segment in [(0, 0), (1, 1), (2, 1), (-1, 1)] { #expect(!Dialogue.accepts(account, Dialogue.output(segment))) }
    #expect(!Dialogue.accepts(Dialogue.account(isStarted: false), Dialogue.output((0, 1))))
    let ended = Dialogue.end((0, .success(Dialogue.report(0))))
    #expect(Dialogue.accepts(account, ended))
    #expect(!Dialogue.accepts(account, ended, Dialogue.output((0, 1))))
  }

  @Test("the output of a request, in all its parts, has a limit")
  func requestOutput() {
    for (reserved, limit) in [(1, Dialogue.maxResponseByteCount), (1001, Dialogue.maxResponseByteCount + 1000)] {
      let account = Dialogue.account(reserved: UInt64(reserved))
      #expect(Dialogue.accepts(account, Dialogue.output((0, limit))))
      #expect(!Dialogue.accepts(account, Dialogue.output((0, limit + 1))))
      let part = Dialogue.output((0, limit - 10), isPartial: true)
      #expect(Dialogue.accepts(account, part, Dialogue.output((0, 10))))
      #expect(!Dialogue.accepts(account, part, Dialogue.output((0, 11))))
    }
  }

  @Test("a result has a limit over all requests, of which the image's size is a part unless it is a preview")
  func resultOutput() {
    for (maxSide, supplied, limit) in [
      (nil, 0, Dialogue.maxResultByteCount), (nil, 500, Dialogue.maxResultByteCount + 1000),
      (8, 500, Dialogue.maxResultByteCount),
    ] as [(Int?, Int, Int)] {
      let account = Dialogue.account(reserved: 1 << 30, maxSide: maxSide, supplied: supplied)
      #expect(Dialogue.accepts(account, Dialogue.output((0, limit))))
      #expect(!Dialogue.accepts(account, Dialogue.output((0, limit + 1))))
      for (count, isAccepted) in [(10, true), (11, false)] {
        var later = account
        _ = later.accepts(Dialogue.output((0, limit - 10)), to: Dialogue.request(.advance), isCancelled: false)
        later.begin()
        #expect(Dialogue.accepts(later, Dialogue.output((0, count))) == isAccepted)
      }
    }
  }

  @Test("each rendition of a started image ends once, a result with the size that was received")
  func ends() {
    let account = Dialogue.account([Dialogue.planned(), Dialogue.refused])
    let error: WorkResponse.End = (1, .failure(PipelineError(.invalidField, "")))
    #expect(Dialogue.accepts(account, Dialogue.end((0, .success(Dialogue.report(0))), error)))
    #expect(!Dialogue.accepts(account, Dialogue.end(error, error)))
    #expect(!Dialogue.accepts(account, Dialogue.end((1, .success(Dialogue.report(0))))))
    for index in [-1, 2] { #expect(!Dialogue.accepts(account, Dialogue.end((index, error.outcome)))) }
    let early = Dialogue.plan { $0.work.ends = [(0, error.outcome)] }
    #expect(!Dialogue.acceptsHeader(early))
    for (count, isAccepted) in [(9, false), (10, true), (11, false)] {
      var end = Dialogue.end((0, .success(Dialogue.report(count))))
      end.segments = [HelperResponse.Segment(rendition: 0, byteCount: 10)]
      #expect(Dialogue.accepts(account, end) == isAccepted)
    }
  }

  @Test("a report has known formats and numbers that exist")
  func reports() {
    let account = Dialogue.account()
    let trial = { FormatTrial(format: $0, estimatedByteCount: 1, compressionQuality: $1) }
    let changes: [((inout ProcessingReport) -> Void, Bool)] = [
      ({ $0.formatTrials = [trial("webp", 0.5), trial("png", nil)] }, true),
      ({ $0.formatTrials = [trial("exe", 0.5)] }, false), ({ $0.formatTrials = [trial("webp", .nan)] }, false),
      ({ $0.formatTrials = Array(repeating: trial("png", nil), count: 9) }, false),
      ({ $0.compressionQuality = 1 }, true), ({ $0.compressionQuality = 1.5 }, false),
      ({ $0.compressionQuality = .nan }, false), ({ $0.similarity = 0.5 }, true), ({ $0.similarity = .nan }, false),
      ({ $0.input.format = "exe" }, false), ({ $0.output.format = "exe" }, false),
    ]
    for (index, (change, isAccepted)) in changes.enumerated() {
      #expect(
        Dialogue.accepts(account, Dialogue.end((0, .success(Dialogue.report(0, change))))) == isAccepted, "\(index)")
    }
  }

  @Test(
    "errors are those of work on an image, and a cancelled one was cancelled",
    arguments: [
      (PipelineError.Code.corruptImage, true, true), (.internalDefect, true, true), (.cancelled, false, true),
      (.unknownPreset, false, false), (.uploadStalled, false, false), (.codecCrashed, false, false),
      (.codecStopped, false, false),
    ])
  func errors(code: PipelineError.Code, isAccepted: Bool, isAcceptedIfCancelled: Bool) {
    let error = PipelineError(code, "")
    let account = Dialogue.account([Dialogue.planned(), Dialogue.refused])
    for (isCancelled, isAccepted) in [(false, isAccepted), (true, isAcceptedIfCancelled)] {
      let image = Dialogue.response { $0.error = error }
      #expect(Dialogue.accepts(account, image, isCancelled: isCancelled) == isAccepted)
      for index in [0, 1] {
        #expect(
          Dialogue.accepts(account, Dialogue.end((index, .failure(error))), isCancelled: isCancelled) == isAccepted)
      }
    }
  }

  @Test("a result has the size of several frames only if they were requested")
  func frames() {
    var output = Dialogue.info("gif")
    output.frameCount = 0
    var input = Dialogue.info("gif")
    input.frameCount = 3
    // 8 by 8 pixels of 16 bytes and 8 KiB for each frame.
    let maximum = 3 * (64 * 16 + (8 << 10)) + (1 << 20)
    for (mayHaveFrames, byteCount, isAccepted) in [
      (false, Dialogue.maxResultByteCount, true), (false, Dialogue.maxResultByteCount + 1, false),
      (true, maximum, true),
      (true, maximum + 1, false),
    ] {
      var account = Dialogue.account([Dialogue.planned(input, output)], reserved: 4 << 20)
      account.mayHaveFrames = mayHaveFrames
      #expect(Dialogue.accepts(account, Dialogue.output((0, byteCount), isPartial: true)) == isAccepted, "\(byteCount)")
    }
  }

  @Test("temporary files have the size of the decoded image together")
  func files() {
    func answers(_ account: HelperDialogue, _ byteCounts: [UInt64]) -> [Bool] {
      var account = account
      return byteCounts.map { account.allowsFile(byteCount: $0) }
    }
    #expect(answers(HelperDialogue(limits: Dialogue.limits, recordsSpans: false), [1]) == [false])
    // 8 by 8 pixels, complete blocks of 64 at their edges, and 12 bytes each.
    let maximum = UInt64((64 + 64 * (8 + 8 + 64)) * 12)
    #expect(answers(Dialogue.account(), [maximum + 1, .max, maximum]) == [false, false, true])
    #expect(
      answers(Dialogue.account(), [maximum - 1, 0, 2, .max, 1, 1, 0]) == [true, true, false, false, true, false, true])
    #expect(answers(Dialogue.account([Dialogue.refused], isStarted: false), [1]) == [false])
  }
}
