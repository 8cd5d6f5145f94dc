// The error of an operation on rows that only other nodes of the cluster hold. The server then forwards the request to
// such a node.

import { SagittaError } from '../../common/errors.js';

export class NotHeldError extends SagittaError {
  /** The ids of the collections that the answering node must hold. */
  readonly collections: readonly string[];

  constructor(collections: readonly string[]) {
    const names = collections.map((id) => `"${id}"`).join(' and ');
    super('no_holder', `This node does not hold ${names}. Retry after 1 s.`, {
      retryAfterSeconds: 1,
    });
    this.collections = collections;
  }
}
