// Rules that zod has no words for: what they find wrong becomes an issue with our code and message.

import { z } from 'zod';
import type { FieldPath, Violation } from '../../common/errors.js';

/** A violation, and the members that lead to what it is about; absent for the value itself. */
export type Found = Violation & { readonly path?: FieldPath };

/** For `superRefine`: reports what is wrong with a value. */
export function refineWith<Value>(
  find: (value: Value) => Found | readonly Found[] | null,
): (value: Value, context: z.RefinementCtx) => void {
  return (value, context) => {
    const found = find(value) ?? [];
    for (const { path = [], ...params } of 'code' in found ? [found] : found) {
      context.addIssue({ code: 'custom', path: [...path], message: params.detail, params });
    }
  };
}

/**
 * For values that have a form of their own, such as vectors: what `read` returns takes the place of the value. It gets
 * any value; its parameter has the type that clients send.
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

function isViolation(result: object | string): result is Found {
  return typeof result === 'object' && 'code' in result;
}
