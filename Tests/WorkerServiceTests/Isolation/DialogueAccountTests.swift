import ImagePipeline
import Testing

@testable import WorkerService

/// Which responses the account of a dialogue accepts: each test has one that is accepted, and next to it one that is not.
@Suite("Account of a dialogue with a helper")
struct DialogueAccountTests {
  @Test("a plan has as many renditions as were requested, and is sent once")
  func plans() {
    #expect(Dialogue.acceptsHeader(Dialogue.plan()))
    for count in [0, 2] {
      #expect(!Dialogue.acceptsHeader(Dialogue.plan(Array(repeating: Dialogue.planned(), count: count))))
    }
    #expect(Dialogue.acceptsHeader(Dialogue.plan([Dialogue.planned(), Dialogue.refused]), Dialogue.planning(2)))
    let planned = Dialogue.account(isStarted: false)
    #expect(!Dialogue.accepts(planned, Dialogue.plan(), to: Dialogue.request(.readHeader(Dialogue.planning()))))
    #expect(!Dialogue.accepts(planned, Dialogue.plan()))
  }

  @Test("a plan has a reservation that includes its working set, known formats, and the sides of a preview")
  func planValues() {
    #expect(Dialogue.acceptsHeader(Dialogue.plan(workingSet: 2, reserved: 2)))
    #expect(!Dialogue.acceptsHeader(Dialogue.plan(workingSet: 3, reserved: 2)))
    #expect(!Dialogue.acceptsHeader(Dialogue.plan([Dialogue.planned(Dialogue.info("exe"))])))
    #expect(!Dialogue.acceptsHeader(Dialogue.plan([Dialogue.planned(Dialogue.info(), Dialogue.info("exe"))])))
    // Only a request for AUTO leaves the format open.
    let open = Dialogue.plan([Dialogue.planned(Dialogue.info(), Dialogue.info(""))])
    let auto = ProcessingConfiguration(preferredFormat: .auto)
    #expect(Dialogue.acceptsHeader(open, WorkRequest.Planning(results: .renditions([auto]))))
    #expect(!Dialogue.acceptsHeader(open))
    #expect(!Dialogue.acceptsHeader(open, WorkRequest.Planning(results: .preview(auto, maxSide: 8))))
    let preview = Dialogue.planning(maxSide: 8)
    #expect(Dialogue.acceptsHeader(Dialogue.plan(), preview))
    #expect(
      !Dialogue.acceptsHeader(Dialogue.plan([Dialogue.planned(Dialogue.info(), Dialogue.info(width: 9))]), preview))
  }

  @Test("no more bytes are consumed or buffered than an image has")
  func counts() {
    let consumed = { count in Dialogue.plan { $0.work.consumedByteCount = count } }
    #expect(Dialogue.acceptsHeader(consumed(5), byteCount: 5))
    #expect(!Dialogue.acceptsHeader(consumed(6), byteCount: 5))
    let buffered = { count in Dialogue.plan { $0.work.bufferedByteCount = count } }
    #expect(Dialogue.acceptsHeader(buffered(Dialogue.limits.memory)))
    #expect(!Dialogue.acceptsHeader(buffered(Dialogue.limits.memory + 1)))
    let account = Dialogue.account()
    let advanced = Dialogue.response { $0.work.consumedByteCount = 1 }
    #expect(Dialogue.accepts(account, advanced, to: Dialogue.request(.advance, 2)))
    var buffering = advanced
    buffering.work.bufferedByteCount = 1
    #expect(!Dialogue.accepts(account, buffering, to: Dialogue.request(.advance, 2)))
  }

  @Test("an image starts when it is asked to, or with its header in the admitted memory")
  func start() {
    let started = Dialogue.plan(reserved: 100) { $0.work.isStarted = true }
    #expect(Dialogue.acceptsHeader(started, Dialogue.planning(admitted: 100)))
    #expect(!Dialogue.acceptsHeader(started, Dialogue.planning(admitted: 99)))
    let planned = Dialogue.account(isStarted: false)
    let start = Dialogue.response { $0.work.isStarted = true }
    #expect(Dialogue.accepts(planned, start, to: Dialogue.request(.start(renditionIDs: []))))
    #expect(!Dialogue.accepts(planned, Dialogue.response { _ in }, to: Dialogue.request(.start(renditionIDs: []))))
    #expect(!Dialogue.accepts(planned, start))
    #expect(!Dialogue.accepts(planned, Dialogue.response { _ in }))
    let failed = Dialogue.account([Dialogue.refused], isStarted: false)
    #expect(!Dialogue.accepts(failed, start, to: Dialogue.request(.start(renditionIDs: []))))
  }

  @Test("spans are sent if they were requested, as many as stages can have")
  func spans() {
    func spans(_ count: Int) -> HelperResponse {
      var response = Dialogue.output((0, 1))
      response.spans = Array(repeating: RecordedSpan(name: "decode", began: 1), count: count)
      return response
    }
    let (recording, silent) = (Dialogue.account(recordsSpans: true), Dialogue.account())
    let maximum = 8 * Rendition.maxCount
    #expect(Dialogue.accepts(recording, spans(maximum)) && !Dialogue.accepts(recording, spans(maximum + 1)))
    #expect(Dialogue.accepts(silent, spans(0)) && !Dialogue.accepts(silent, spans(1)))
  }

  @Test("a part of a response has output, and nothing of its end")
  func parts() {
    let account = Dialogue.account([Dialogue.planned(), Dialogue.refused])
    let part = Dialogue.output((0, 10), isPartial: true)
    #expect(Dialogue.accepts(account, part))
    let changes: [(inout HelperResponse) -> Void] = [
      { $0.segments = [] }, { $0.error = PipelineError(.corruptImage, "") }, { $0.work.isPaused = true },
      { $0.work.ends = [(1, .failure(PipelineError(.invalidField, "")))] },
    ]
    for (index, change) in changes.enumerated() {
      var changed = part
      change(&changed)
      #expect(!Dialogue.accepts(account, changed), "\(index)")
    }
  }

  @Test("each request is answered with progress")
  func progress() {
    let consumed = { count in Dialogue.response { $0.work.consumedByteCount = count } }
    #expect(Dialogue.acceptsHeader(consumed(5), byteCount: 5))
    #expect(!Dialogue.acceptsHeader(consumed(4), byteCount: 5))
    #expect(!Dialogue.acceptsHeader(consumed(5), byteCount: 5, isLast: true))
    let account = Dialogue.account([Dialogue.planned(), Dialogue.refused])
    let request = Dialogue.request(.advance, 5)
    #expect(Dialogue.accepts(account, consumed(1), to: request))
    #expect(!Dialogue.accepts(account, consumed(0), to: request))
    #expect(Dialogue.accepts(account, Dialogue.output((0, 1)), to: request))
    let end = Dialogue.end((1, .failure(PipelineError(.invalidField, ""))))
    #expect(Dialogue.accepts(account, end, to: request))
    #expect(Dialogue.accepts(account, consumed(0), to: Dialogue.request(.advance)))
    let paused = Dialogue.response { $0.work.isPaused = true }
    #expect(!Dialogue.accepts(account, paused, to: Dialogue.request(.advance)))
  }
}
