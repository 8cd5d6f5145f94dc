// The cluster that the service may be a node of.

import { z } from 'zod';
import { count } from './basics.js';

const NODE_EXAMPLE = {
  name: 'sagitta-0',
  url: 'http://sagitta-0:8484',
  zone: 'a',
  version: '1.0.0',
  state: 'serving',
  collection_count: 3,
  held_count: 7,
  drain: 'none',
} as const;

const node = z
  .object({
    name: z.string().meta({ description: 'The name of the node, as it is configured.' }),
    url: z.string().meta({
      description: 'Where the other nodes reach it; empty until requests are answered.',
    }),
    zone: z.string().meta({
      description:
        'Where the node may fail together with others; empty where that is not configured.',
    }),
    version: z.string().meta({ description: 'The version of the program.' }),
    state: z.enum(['joining', 'serving', 'leaving']).meta({
      description: '`joining`: requests are not answered yet; `leaving`: it is about to stop.',
    }),
    collection_count: count('Of how many collections the node carries out the writes.'),
    held_count: count('How many collections the node holds.'),
    drain: z.enum(['none', 'draining', 'drained']).meta({
      description:
        '`draining`: it is to be stopped, and other nodes have yet to take over from it; `drained`: it can be stopped.',
    }),
  })
  .meta({
    id: 'ClusterNode',
    description: 'A node of the cluster that was heard of lately.',
    examples: [NODE_EXAMPLE],
  });

const durability = z
  .object({
    state: z.enum(['verified', 'unverified', 'insufficient']).meta({
      description:
        '`verified`: every NATS server syncs each message before it acknowledges it; `unverified`: that is not known; `insufficient`: what was acknowledged can be lost.',
    }),
    detail: z.string().meta({ description: 'What was found, and what to do about it.' }),
  })
  .meta({
    id: 'ClusterDurability',
    description: 'Whether the logs of the cluster keep what was acknowledged.',
    examples: [
      {
        state: 'verified',
        detail:
          'nats-0 (http://nats-0:8222), nats-1 (http://nats-1:8222), nats-2 (http://nats-2:8222) sync every message before they acknowledge it; each log has 3 replicas.',
      },
    ],
  });

const DIGEST = '5f'.repeat(32);
const digest = z.string().meta({ description: '64 hexadecimal digits.', examples: [DIGEST] });

const nodeDigest = z
  .object({
    node: z.string().meta({ description: 'The name of the node.' }),
    vector_count: count('The number of vectors at the sequence.').optional(),
    digest: digest.optional(),
    problem: z.string().optional().meta({
      description: 'Why the node has no digest, or one of less than was committed.',
    }),
  })
  .meta({
    id: 'NodeDigest',
    description: 'What a node of the cluster has of a collection.',
    examples: [{ node: 'sagitta-0', vector_count: 2, digest: DIGEST }],
  });

const verifiedFiles = z
  .object({
    kind: z.enum(['log', 'archive', 'snapshot', 'origin']).meta({
      description:
        '`log`: the records of a log; `archive`: its chunks among the shared files; `snapshot`: what new nodes start from; `origin`: what a clone had before its first write.',
    }),
    name: z.string().meta({ description: 'Name of the log or the snapshot.' }),
    count: count('Records of a log, chunks of an archive, files of the others.'),
    byte_count: count('Their bytes.'),
    problem: z.string().nullable().meta({
      description: 'What is wrong; null when everything is as it was written.',
    }),
  })
  .meta({
    id: 'VerifiedFiles',
    description: 'What belongs together among the logs and the shared files of a cluster.',
    examples: [{ kind: 'log', name: 'catalogue', count: 12, byte_count: 8_000, problem: null }],
  });

export const clusterSchemas = {
  digest: z
    .object({
      sequence: count('The sequence of the write up to which the collection was read.'),
      vector_count: count('The number of vectors at that sequence.'),
      digest,
      nodes: z.array(nodeDigest).optional().meta({
        description:
          'With `all_nodes`: the nodes of the cluster in the order of their names; empty for a service that is alone.',
      }),
    })
    .meta({
      id: 'CollectionDigest',
      description: 'A digest of what a collection has at a sequence.',
      examples: [{ sequence: 33, vector_count: 2, digest: DIGEST }],
    }),
  files: z
    .object({
      files: z.array(verifiedFiles).meta({
        description: 'Everything that was read; empty for a service that is alone.',
      }),
    })
    .meta({
      id: 'ClusterFiles',
      description: 'Whether the logs and the shared files of the cluster are as they were written.',
      examples: [
        {
          files: [{ kind: 'log', name: 'catalogue', count: 12, byte_count: 8_000, problem: null }],
        },
      ],
    }),
  node,
  cluster: z
    .object({
      node: z.string().nullable().meta({
        description: 'The name of the node that replies; null for a service that is alone.',
      }),
      leader: z.string().nullable().meta({
        description:
          'The name of the node that creates, changes and deletes collections, aliases and API keys, as far as this one knows; null for none.',
      }),
      nodes: z.array(node).meta({
        description: 'The nodes in the order of their names; empty for a service that is alone.',
      }),
      durability: durability.nullable().meta({
        description: 'As this node has found it; null for a service that is alone.',
      }),
    })
    .meta({
      id: 'Cluster',
      description: 'The cluster as one of its nodes sees it.',
      examples: [
        {
          node: 'sagitta-0',
          leader: 'sagitta-0',
          nodes: [
            NODE_EXAMPLE,
            {
              ...NODE_EXAMPLE,
              name: 'sagitta-1',
              url: 'http://sagitta-1:8484',
              zone: 'b',
              drain: 'drained',
              collection_count: 0,
            },
          ],
          durability: {
            state: 'unverified',
            detail: 'http://nats-2:8222 could not be checked: connect ECONNREFUSED.',
          },
        },
      ],
    }),
};
