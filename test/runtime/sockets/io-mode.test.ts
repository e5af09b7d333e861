/** The choice between `direct` and `node` I/O. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { chooseIoMode, ioMode, setIoMode } from '../../../runtime/sockets/io-mode.ts';
import { freePorts, serve, temporaryFolder } from '../../harness.ts';
import { respondingSite, withServer } from '../running-server.ts';

const modes = suite('I/O modes');

modes('an untested release of Node uses `node`', () => {
	assert.is(chooseIoMode(undefined, {}, '26.10.0'), 'direct');
	for (const release of ['26.10.1', '26.11.0', '27.0.0', '24.9.0']) {
		assert.is(chooseIoMode(undefined, {}, release), 'node', release);
	}
});

modes('the configuration overrides the release, and the environment overrides both', () => {
	assert.is(chooseIoMode('node', {}, '26.10.0'), 'node');
	assert.is(chooseIoMode('direct', {}, '27.0.0'), 'direct');
	assert.is(chooseIoMode('direct', { SVC_IO: 'node' }, '26.10.0'), 'node');
	assert.is(chooseIoMode('node', { SVC_IO: 'direct' }, '27.0.0'), 'direct');
	assert.is(chooseIoMode('node', { SVC_IO: '' }, '26.10.0'), 'node');
});

modes('a server reports its mode, and refuses one that does not exist', async () => {
	const unset = process.env.SVC_IO;
	const previous = ioMode();
	delete process.env.SVC_IO;
	try {
		const document = { settings: { io: 'node' as const }, sites: [respondingSite('by Node alone')] };
		await withServer(document, {}, async ({ get, log }) => {
			assert.is((await get()).body, 'by Node alone');
			assert.is(log.entries.find(entry => entry.msg === 'serving')?.io, 'node');
		});
		process.env.SVC_IO = 'fast';
		await withServer(document, {}, async () => {}).then(
			() => assert.unreachable('an unknown mode was accepted'),
			error => assert.match(String(error.message), 'SVC_IO is `fast`: set it to direct or node, or unset it.'),
		);
	} finally {
		if (unset === undefined) delete process.env.SVC_IO;
		else process.env.SVC_IO = unset;
		setIoMode(previous);
	}
});

modes('a server prints no warning about experimental modules of Node', async () => {
	const folder = temporaryFolder();
	const [port] = (await freePorts(1)) as [number];
	const file = path.join(folder, 'Configfile');
	writeFileSync(file, `{\n\tadmin off\n}\nhttp://127.0.0.1:${port} {\n\trespond hello\n}\n`);
	const server = await serve([file], port, { env: { SVC_IO: 'direct', XDG_STATE_HOME: folder } });
	try {
		assert.is(await (await fetch(`http://127.0.0.1:${port}/`)).text(), 'hello');
	} finally {
		await server.stop();
	}
	assert.match(server.output(), '"io":"direct"');
	assert.not.match(server.output(), 'Warning');
});

modes.run();
