// The errors of readers, which tell the user what is wrong with a file or a row.

export class ReadError extends Error {
  /** The message without advice on options of the command line. */
  readonly problem: string;
  /** Whether the options are at fault rather than the file. */
  readonly isUsage: boolean;

  constructor(problem: string, { advice = '', isUsage = false, cause }: ReadErrorOptions = {}) {
    super(problem + advice, cause === undefined ? undefined : { cause });
    this.name = 'ReadError';
    this.problem = problem;
    this.isUsage = isUsage;
  }
}

interface ReadErrorOptions {
  /** Continues the message with the option of the command line that helps. */
  readonly advice?: string;
  readonly isUsage?: boolean;
  readonly cause?: unknown;
}

/** An invalid row. The rows after it can still be read. */
export class RowError extends ReadError {
  /** The message without the location. */
  readonly rowProblem: string;

  constructor(location: string, rowProblem: string, advice = '') {
    super(`${location}: ${rowProblem}`, { advice });
    this.rowProblem = rowProblem;
  }
}

/** Formats a value for an error message as truncated JSON. */
export function show(value: unknown): string {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  const text = isNumber ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`;
}
