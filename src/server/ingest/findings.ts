// Findings: what is wrong with a request, gathered so that one reply names all of it. A fault is a
// finding that does not know yet where in the request it stands.

import {
  type ErrorCode,
  ISSUES_MAX,
  SagittaError,
  type ValidationIssue,
} from '../../common/errors.js';

export interface Fault {
  readonly code: ErrorCode;
  /** A whole sentence, without the place. */
  readonly detail: string;
  readonly expected?: string | number;
  readonly actual?: string | number;
}

export const issueAt = (pointer: string, fault: Fault): ValidationIssue => ({ pointer, ...fault });

/** The error that reports these findings, at least one. Its code is theirs, or, when they differ, `invalid_request`. */
export function validationError(items: readonly ValidationIssue[]): SagittaError {
  const first = items[0]!;
  const code = items.every((item) => item.code === first.code) ? first.code : 'invalid_request';
  const count = `${items.length}${items.length < ISSUES_MAX ? '' : ' or more'}`;
  const others = items.length === 1 ? '' : ` This is the first of ${count} findings.`;
  const where = first.pointer === '' ? '' : `${first.pointer}: `;
  return new SagittaError(code, `${where}${first.detail}${others}`, { issues: items });
}

/** Does `work`; where it is refused, findings are moved to where this request has what they are about. */
export async function withPointers<Result>(
  move: (pointer: string) => string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SagittaError)) throw error;
    const items = error.issues.map((item) => ({ ...item, pointer: move(item.pointer) }));
    const { retryAfterSeconds } = error;
    throw new SagittaError(error.code, error.message, {
      issues: items,
      cause: error,
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    });
  }
}

/** A JSON pointer (RFC 6901) into the body. */
export function pointerTo(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** What was found, for a message: kinds of values rather than their contents. */
export function describeKind(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object') return 'an object';
  return typeof value === 'boolean' ? String(value) : `a ${typeof value}`;
}
