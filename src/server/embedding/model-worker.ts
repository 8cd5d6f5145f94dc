// The composition root of the threads that run the built-in model.

import { createTaskHandler } from '../../platform/pool.js';
import { embedTextsTask, loadModel } from './embed-task.js';

export default loadModel().then(() => createTaskHandler([embedTextsTask]));
