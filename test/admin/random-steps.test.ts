/** A short run of random Admin API calls against a model; test/long/admin-state-machine.test.ts is the long run. */
process.env.STEPS ??= '200';
process.env.SEED ??= '2';
await import('../long/admin-state-machine.test.ts');
