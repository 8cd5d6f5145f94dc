// What is wrong with a file, for the person who chose it.

export class ReadError extends Error {
  /** What is wrong, without advice on options of the command line. */
  readonly problem: string;
  /** Whether another option, and not another file, is needed. */
  readonly isUsage: boolean;

  constructor(problem: string, { advice = '', isUsage = false, cause }: ReadErrorOptions = {}) {
    super(problem + advice, cause === undefined ? undefined : { cause });
    this.name = 'ReadError';
    this.problem = problem;
    this.isUsage = isUsage;
  }
}

interface ReadErrorOptions {
  /** Continues the message: which option of the command line helps. */
  readonly advice?: string;
  readonly isUsage?: boolean;
  readonly cause?: unknown;
}

/** An invalid row: the rows after it can be read all the same. */
export class RowError extends ReadError {
  /** What is wrong, without the place. */
  readonly rowProblem: string;

  constructor(location: string, rowProblem: string, advice = '') {
    super(`${location}: ${rowProblem}`, { advice });
    this.rowProblem = rowProblem;
  }
}

/** A value for an error message: as JSON, truncated. */
export function show(value: unknown): string {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  const text = isNumber ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`;
}
