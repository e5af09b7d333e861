/** The entry point of threads that check passwords. */
import { mainThread } from '../threads/thread-start.ts';
import { runPasswordThread } from './password-thread.ts';

runPasswordThread(mainThread);
