/** The settings of V8's optimizing compiler, which decide whether V8 accepts code caches. */
import { execFileSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const settings = suite('settings of the optimizing compiler');

/** Runs a module in a process of its own, because the settings apply to the whole process. Returns its output, which is JSON. */
function runAlone(body: string): unknown {
	const moduleUrl = new URL('../../../runtime/threads/optimizer-settings.ts', import.meta.url).href;
	const script = `
		import { Script } from 'node:vm';
		import { OptimizerSettings } from ${JSON.stringify(moduleUrl)};
		const code = '(function () { return 1; })';
		const cachedData = new Script(code).createCachedData();
		let files = 0;
		const acceptsCaches = () => !new Script(code, { filename: String(files++), cachedData }).cachedDataRejected;
		const settings = new OptimizerSettings();
		${body}`;
	return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }));
}

settings('V8 accepts code caches before a process serves, and while it starts threads or loads code', () => {
	const results = runAlone(`
		const results = [acceptsCaches()];
		settings.applyForServing();
		results.push(acceptsCaches());
		results.push(await settings.whileStarting(async () => acceptsCaches()));
		results.push(acceptsCaches());
		console.log(JSON.stringify(results));`);
	assert.equal(results, [true, false, true, false]);
});

settings('of two starts at the same time, the first one to end does not take the code caches from the other', () => {
	const results = runAlone(`
		settings.applyForServing();
		const [first, second] = [Promise.withResolvers(), Promise.withResolvers()];
		const starts = [first, second].map(({ promise }) => settings.whileStarting(() => promise));
		first.resolve();
		await starts[0];
		const results = [acceptsCaches()];
		second.reject(new Error('failed'));
		await starts[1].catch(() => {});
		results.push(acceptsCaches());
		console.log(JSON.stringify(results));`);
	assert.equal(results, [true, false]);
});

settings.run();
