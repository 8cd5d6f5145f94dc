import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { queueOptionsSymbol } from 'piscina';
import { TaskQueue, URGENT } from '../../src/platform/task-queue.js';

const taskOf = (name: string, isUrgent: boolean) => ({
  name,
  [queueOptionsSymbol]: isUrgent ? URGENT[queueOptionsSymbol] : null,
});

/** The names of all tasks in the order in which they are taken. */
function takeAll(queue: TaskQueue): string[] {
  const names: string[] = [];
  for (;;) {
    const task = queue.shift();
    if (task === null) return names;
    names.push((task as ReturnType<typeof taskOf>).name);
  }
}

describe('waiting tasks', () => {
  it('are taken in the order of arrival, urgent ones first', () => {
    const queue = new TaskQueue();
    const tasks = ['a', 'B', 'c', 'D'].map((name) => taskOf(name, name === name.toUpperCase()));
    for (const task of tasks) queue.push(task);
    assert.equal(queue.size, 4);
    assert.deepEqual(takeAll(queue), ['B', 'D', 'a', 'c']);
    assert.equal(queue.size, 0);
  });

  it('are taken from time to time while urgent ones arrive', () => {
    const queue = new TaskQueue();
    for (let i = 0; i < 3; i++) queue.push(taskOf(`other ${i}`, false));
    for (let i = 0; i < 40; i++) queue.push(taskOf('urgent', true));
    const names = takeAll(queue);
    assert.deepEqual(
      names.flatMap((name, index) => (name === 'urgent' ? [] : [index])),
      [16, 33, 42],
    );
  });

  it('can be removed', () => {
    const queue = new TaskQueue();
    const [first, second] = [taskOf('first', true), taskOf('second', false)];
    queue.push(first);
    queue.push(second);
    queue.remove(first);
    assert.equal(queue.size, 1);
    queue.remove(second);
    assert.equal(queue.shift(), null);
  });
});
