// What a reply tells about a request that was answered, but perhaps not as it was meant.

export interface Warning {
  readonly code: 'unknown_path';
  /** The member of the request that names the path. */
  readonly in: string;
  readonly path: string;
  /** A sentence, with the path that was probably meant. */
  readonly detail: string;
}
