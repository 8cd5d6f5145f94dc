// The error of an operation that needs rows of collections that only other nodes of the cluster hold. The server then
// sends the request to a node that holds them.

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
