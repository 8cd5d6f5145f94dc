// What fills a service before others may use it, as the demo does with its samples.

export interface Preparation {
  readonly isDone: boolean;
  /** In the header of its own requests, which are served before it is done. */
  readonly token: string;
}

export const PREPARATION_HEADER = 'sagitta-preparation';
