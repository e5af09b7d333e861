/**
 * The logs to which an access log entry is written: the site's log, the process log, and process-wide logs that include the
 * site's.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { SiteLog } from '../../../compiler/document/document.ts';
import { accessLogTargets, includesLogger, namedLogTargets } from '../../../compiler/document/log-namespaces.ts';

const file = (path: string) => ({ writer: 'file', path });

/** Returns the destinations of a site log's entries, as `logger output`. */
function logTargets(log: SiteLog, logs: { [name: string]: SiteLog } = {}): string[] {
	return accessLogTargets(log, { logs }).map(({ logger, output }) => `${logger} ${output.path ?? output.writer}`);
}

const spaces = suite('log namespaces');

const TAKEN: readonly (readonly [include: string[], exclude: string[], logger: string, boolean])[] = [
	[[], [], 'http', true],
	[['http'], [], 'http.log.access', true],
	[['http'], [], 'https', false],
	[['http.log'], ['http.log.access'], 'http.log.access', false],
	[['http.log'], ['http.log.access'], 'http.log.error', true],
	[['http.log.access.api'], ['http.log.access'], 'http.log.access.api', true],
	[[], ['http'], 'runtime', true],
];

for (const [include, exclude, logger, takes] of TAKEN) {
	spaces(`+${include} -${exclude} ${takes ? 'includes' : 'excludes'} ${logger}`, () => {
		assert.is(includesLogger({ include, exclude }, logger), takes);
	});
}

spaces('a site log without a name and settings writes to the process log', () => {
	assert.equal(logTargets({}), ['http.log.access stderr']);
	assert.equal(logTargets({}, { default: { output: file('/p') } }), ['http.log.access /p']);
	assert.equal(logTargets({}, { default: { exclude: ['http.log.access'] } }), []);
});

spaces('a site log with a name or settings has its own output, and the process log omits its entries', () => {
	assert.equal(logTargets({ name: 'a', output: file('/a') }), ['http.log.access.a /a']);
	assert.equal(logTargets({ name: 'a' }, { default: { output: file('/p') } }), ['http.log.access.a stderr']);
	assert.equal(logTargets({ name: 'a' }, { a: { output: file('/a') } }), ['http.log.access.a /a']);
});

spaces('other process-wide logs receive the entries that they include', () => {
	const logs = {
		access: { output: file('/all'), include: ['http.log.access'] },
		errors: { include: ['http.log.error'] },
	};
	assert.equal(logTargets({}, logs), ['http.log.access stderr', 'http.log.access /all']);
	assert.equal(logTargets({ name: 'a', output: file('/a') }, logs), ['http.log.access.a /a', 'http.log.access.a /all']);
});

spaces('a logger name without a log of that name writes to the process log', () => {
	const names = (logs: { [name: string]: SiteLog }) =>
		namedLogTargets('x', { logs }).map(({ logger, output }) => `${logger} ${output.writer}`);
	assert.equal(names({}), ['http.log.access.x stderr']);
	assert.equal(names({ default: { exclude: ['http'] }, x: { output: { writer: 'stdout' } } }), [
		'http.log.access.x stdout',
	]);
});

spaces('debug lowers the level of logs that set none', () => {
	assert.equal(
		[{}, { level: 'ERROR' }].map(log => accessLogTargets({ name: 'a', ...log }, { debug: true })[0]!.level),
		['DEBUG', 'ERROR'],
	);
});

spaces.run();
