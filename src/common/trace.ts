// Traces as the rest of the program sees them: what a request carries (W3C Trace Context), and who
// may be told of its spans. `tracing.ts` has the one who sends them; without it there is none.

export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits: of the span that called us. */
  readonly spanId: string;
  readonly isSampled: boolean;
  /** What other tracing systems have to say, passed on as it came. */
  readonly state: string | undefined;
}

/** A part of a request, by `performance.now()`. */
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
    /** Of the table of errors, where the request failed. */
    readonly errorCode: string | undefined;
    readonly endMs: number;
  }): void;
}

export interface Tracer {
  startRequest(request: {
    readonly method: string;
    /** With placeholders. */
    readonly route: string;
    readonly scheme: string;
    readonly startMs: number;
    readonly parent: TraceContext | null;
  }): RequestSpan;
  /** Sends what is left, for a bounded time. */
  close(): Promise<void>;
}
