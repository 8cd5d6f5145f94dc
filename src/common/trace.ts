// The interface of tracing: the context of a request (W3C Trace Context) and its spans.
// `platform/tracing.ts` implements it; without a configured endpoint there is no tracer.

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The caller's span: 16 hexadecimal digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
  /** The `tracestate` of other tracing systems, passed on unchanged. */
  readonly state: string | undefined;
}

/** A phase of a request, in times of `performance.now()`. */
export interface Phase {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes?: Readonly<Record<string, number>>;
}

export interface RequestSpan {
  readonly traceId: string;
  addPhases(phases: readonly Phase[]): void;
  end(outcome: {
    readonly status: number | 'closed';
    /** The error code of a failed request. */
    readonly errorCode: string | undefined;
    readonly endMs: number;
  }): void;
}

export interface Tracer {
  startRequest(request: {
    readonly method: string;
    /** The route with placeholders. */
    readonly route: string;
    readonly scheme: string;
    readonly startMs: number;
    readonly parent: TraceContext | null;
  }): RequestSpan;
  /** Sends the remaining spans, within a bounded time. */
  close(): Promise<void>;
}
