// Rules that zod cannot express. Their violations become issues with our codes and messages.

import { z } from 'zod';
import type { Violation } from '../../common/errors.js';
import type { LocatedViolation } from '../bodies/vector-rules.js';

/** For `superRefine`: reports the violations of a value. */
export function refineWith<Value>(
  find: (value: Value) => LocatedViolation | readonly LocatedViolation[] | null,
): (value: Value, context: z.RefinementCtx) => void {
  return (value, context) => {
    const found = find(value) ?? [];
    for (const { path = [], ...params } of 'code' in found ? [found] : found) {
      context.addIssue({ code: 'custom', path: [...path], message: params.detail, params });
    }
  };
}

/**
 * A schema for values with their own parser, such as vectors. `read` may get any value; the type of its parameter
 * is what clients send.
 */
export function parsedBy<Sent, Result extends object | string>(
  read: (value: Sent) => Result,
): z.ZodType<Exclude<Result, Violation>, Sent> {
  const schema = z.custom<Exclude<Result, Violation>>().superRefine((value: unknown, context) => {
    const result = read(value as Sent);
    if (isViolation(result)) refineWith(() => result)(value, context);
    else context.value = result as Exclude<Result, Violation>;
  });
  return schema as z.ZodType<Exclude<Result, Violation>, unknown> as z.ZodType<
    Exclude<Result, Violation>,
    Sent
  >;
}

function isViolation(result: object | string): result is LocatedViolation {
  return typeof result === 'object' && 'code' in result;
}
