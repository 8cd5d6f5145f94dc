import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { queueOptionsSymbol } from 'piscina';
import { queueOptionsOf, type TaskPriority, TaskQueue } from '../../src/platform/task-queue.js';

const taskOf = (name: string, priority?: TaskPriority) => ({
  name,
  [queueOptionsSymbol]: null,
  ...queueOptionsOf(priority),
});

/** The names of all tasks in the order in which the queue returns them. */
function takeAll(queue: TaskQueue): string[] {
  const names: string[] = [];
  for (;;) {
    const task = queue.shift();
    if (task === null) return names;
    names.push((task as ReturnType<typeof taskOf>).name);
  }
}

describe('waiting tasks', () => {
  it('run in order of arrival, those of writers first, then searches', () => {
    const queue = new TaskQueue();
    queue.push(taskOf('other 1'));
    queue.push(taskOf('search 1', 'search'));
    queue.push(taskOf('write 1', 'write'));
    queue.push(taskOf('other 2'));
    queue.push(taskOf('search 2', 'search'));
    queue.push(taskOf('write 2', 'write'));
    assert.equal(queue.size, 6);
    const expected = ['write 1', 'write 2', 'search 1', 'search 2', 'other 1', 'other 2'];
    assert.deepEqual(takeAll(queue), expected);
    assert.equal(queue.size, 0);
  });

  it('run from time to time while searches arrive', () => {
    const queue = new TaskQueue();
    for (let i = 0; i < 3; i++) queue.push(taskOf(`other ${i}`));
    for (let i = 0; i < 40; i++) queue.push(taskOf('search', 'search'));
    const names = takeAll(queue);
    assert.deepEqual(
      names.flatMap((name, index) => (name === 'search' ? [] : [index])),
      [16, 33, 42],
    );
  });

  it('can be removed', () => {
    const queue = new TaskQueue();
    const [first, second] = [taskOf('first', 'search'), taskOf('second')];
    queue.push(first);
    queue.push(second);
    queue.remove(first);
    assert.equal(queue.size, 1);
    queue.remove(second);
    assert.equal(queue.shift(), null);
  });
});
