/** A short run of the Admin API against its model; test/long/admin-state-machine.test.ts is the long one. */
process.env.STEPS ??= '200';
process.env.SEED ??= '2';
await import('../long/admin-state-machine.test.ts');
