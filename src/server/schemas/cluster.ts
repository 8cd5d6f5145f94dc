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
    name: z.string().meta({ description: 'The configured name of the node.' }),
    url: z.string().meta({
      description: 'The URL for other nodes; empty until the node answers requests.',
    }),
    zone: z.string().meta({
      description: 'The failure domain of the node; empty if none is configured.',
    }),
    version: z.string().meta({ description: 'The version of the program.' }),
    state: z.enum(['joining', 'serving', 'leaving']).meta({
      description: '`joining`: requests are not answered yet; `leaving`: it is about to stop.',
    }),
    collection_count: count('The number of collections whose writes the node carries out.'),
    held_count: count('The number of collections that the node holds.'),
    drain: z.enum(['none', 'draining', 'drained']).meta({
      description:
        '`draining`: it is to be stopped, and other nodes have yet to take over from it; `drained`: it can be stopped.',
    }),
  })
  .meta({
    id: 'ClusterNode',
    description: 'A node of the cluster that has announced itself recently.',
    examples: [NODE_EXAMPLE],
  });

const durability = z
  .object({
    state: z.enum(['verified', 'unverified', 'insufficient']).meta({
      description:
        '`verified`: every NATS server syncs each message before it acknowledges it; `unverified`: this is unknown; `insufficient`: acknowledged writes can be lost.',
    }),
    detail: z.string().meta({ description: 'What was found, and what to do about it.' }),
  })
  .meta({
    id: 'ClusterDurability',
    description: 'Whether the logs of the cluster preserve acknowledged writes.',
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
      description: 'Why the digest is missing, or does not cover all committed writes.',
    }),
  })
  .meta({
    id: 'NodeDigest',
    description: 'The digest of a collection on a node of the cluster.',
    examples: [{ node: 'sagitta-0', vector_count: 2, digest: DIGEST }],
  });

const FILES_EXAMPLE = {
  kind: 'log',
  name: 'catalogue',
  count: 12,
  byte_count: 8_000,
  problem: null,
} as const;

const verifiedFiles = z
  .object({
    kind: z.enum(['log', 'archive', 'snapshot', 'origin']).meta({
      description:
        '`log`: the records of a log; `archive`: its chunks among the shared files; `snapshot`: what new nodes start from; `origin`: what a clone had before its first write.',
    }),
    name: z.string().meta({ description: 'The name of the log or the log snapshot.' }),
    count: count('Records of a log, chunks of an archive, or files.'),
    byte_count: count('Their size in bytes.'),
    problem: z.string().nullable().meta({
      description: 'What is damaged; null if nothing is.',
    }),
  })
  .meta({
    id: 'VerifiedFiles',
    description: 'A log, or a group of shared files, of the cluster.',
    examples: [FILES_EXAMPLE],
  });

export const clusterSchemas = {
  digest: z
    .object({
      sequence: count('The sequence of the write up to which the collection was read.'),
      vector_count: count('The number of vectors at that sequence.'),
      digest,
      nodes: z.array(nodeDigest).optional().meta({
        description:
          'With `all_nodes`: the nodes of the cluster in the order of their names; empty outside a cluster.',
      }),
    })
    .meta({
      id: 'CollectionDigest',
      description: 'A digest of the content of a collection at a sequence.',
      examples: [{ sequence: 33, vector_count: 2, digest: DIGEST }],
    }),
  files: z
    .object({
      files: z.array(verifiedFiles).meta({
        description: 'Everything that was read; empty outside a cluster.',
      }),
    })
    .meta({
      id: 'ClusterFiles',
      description: 'The state of the logs and the shared files of the cluster.',
      examples: [{ files: [FILES_EXAMPLE] }],
    }),
  node,
  cluster: z
    .object({
      node: z.string().nullable().meta({
        description: 'The name of the node that replies; null outside a cluster.',
      }),
      leader: z.string().nullable().meta({
        description:
          'The name of the node that creates, changes and deletes collections, aliases and API keys, as far as this node knows; null if there is none.',
      }),
      nodes: z.array(node).meta({
        description: 'The nodes in the order of their names; empty outside a cluster.',
      }),
      durability: durability.nullable().meta({
        description: 'As determined by this node; null outside a cluster.',
      }),
    })
    .meta({
      id: 'Cluster',
      description: 'The cluster as seen by one of its nodes.',
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
