// A warning in the reply to a request that was answered, but perhaps not as it was meant.

export interface Warning {
  readonly code: 'unknown_path';
  /** The member of the request that names the path. */
  readonly in: string;
  readonly path: string;
  /** A sentence that suggests the path that was probably meant. */
  readonly detail: string;
}
