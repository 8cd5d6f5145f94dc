// Work that fills a service before others may use it, such as the samples of the demo.

export interface Preparation {
  readonly isDone: boolean;
  /** Sent as a header with its own requests, which are served before it is done. */
  readonly token: string;
}

export const PREPARATION_HEADER = 'sagitta-preparation';
