/** With `servers { trace }`, the handlers that run are logged at debug level. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { eventually, withServer } from '../running-server.ts';

const trace = suite('servers trace');

const site = `http://:0 {
	bind 127.0.0.1
	header X-A a
	handle /in/* {
		respond "in"
	}
	respond "out"
}
`;

trace('every handler that runs is logged, without secrets', async () => {
	const text = `{\n\tdebug\n\tservers {\n\t\ttrace\n\t}\n}\n${site}`;
	await withServer(
		undefined,
		{ input: { format: 'compatfile', text, name: 'Compatfile' }, threads: 1 },
		async ({ get, log, runtime }) => {
			const traced = () => log.entries.filter(({ logger }) => logger === 'http.trace');
			assert.is((await get('/in/x?token=secret')).body, 'in');
			await eventually('the handlers are logged', () => traced().length === 3);
			assert.equal(
				traced().map(({ msg, place }) => `${msg} ${place}`),
				[
					'http.handlers.edit_headers /sites/0/pipeline/0',
					'http.handlers.group /sites/0/pipeline/1',
					'http.handlers.respond /sites/0/pipeline/1/pipeline/0',
				],
			);
			const [{ method, path, level }] = traced() as [{ method: string; path: string; level: string }];
			assert.equal([method, path, level], ['GET', '/in/x', 'debug']);
			const entry = log.entries.find(({ logger }) => logger === 'http.handlers')!;
			const { msg, path: asked, handler, at, status, upstream } = entry;
			assert.equal([msg, asked, handler, status, upstream], ['answered', '/in/x', 'respond', 200, undefined]);
			const line = text.split('\n').findIndex(one => one.includes('respond "in"')) + 1;
			assert.is(at, `Compatfile:${line}`);
			assert.not.match(log.text(), 'secret');
			// A reload without `trace` also ends the tracing of sites that have not changed.
			await runtime.load({ format: 'compatfile', text: `{\n\tdebug\n}\n${site}`, name: 'Compatfile' });
			assert.is((await get('/')).body, 'out');
			await runtime.load({ format: 'compatfile', text, name: 'Compatfile' });
			assert.is((await get('/')).body, 'out');
			await eventually('handlers are logged again', () => traced().length === 5);
		},
	);
});

trace.run();
