// Thrown where an operation needs the rows of collections that other nodes of the cluster hold. The server sends the
// request to a node that holds them.

import { SagittaError } from '../../common/errors.js';

export class ElsewhereError extends SagittaError {
  /** The ids of the collections, all of which the node must hold. */
  readonly collections: readonly string[];

  constructor(collections: readonly string[]) {
    const names = collections.map((id) => `"${id}"`).join(' and ');
    super('no_holder', `This node does not hold ${names}. Retry after 1 s.`, {
      retryAfterSeconds: 1,
    });
    this.collections = collections;
  }
}
