/** The systemd unit is well formed, runs a valid command, and has no privilege except binding low ports. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseArguments, scanCommandLine } from '../../../cli/command/arguments.ts';
import { COMMANDS } from '../../../cli/commands/index.ts';
import { SYSTEMD_UNIT_NAME } from '../../../cli/control/service-control.ts';
import { ROOT } from '../../harness.ts';

const text = readFileSync(path.join(ROOT, `cli/packaging/${SYSTEMD_UNIT_NAME}.service`), 'utf8');

/** Parses the unit into values by `Section.Key`. Throws on an invalid line and on a repeated key. */
function parseUnit(): Map<string, string> {
	const valuesByKey = new Map<string, string>();
	let section = '';
	for (const [index, line] of text.split('\n').entries()) {
		if (line === '' || line.startsWith('#')) continue;
		const header = /^\[(Unit|Service|Install)\]$/.exec(line);
		const assignment = /^([A-Z][A-Za-z]+)=(\S.*)$/.exec(line);
		if (header) section = header[1]!;
		else if (!assignment || section === '') throw new Error(`line ${index + 1}: ${line}`);
		else {
			const key = `${section}.${assignment[1]}`;
			if (valuesByKey.has(key)) throw new Error(`line ${index + 1}: ${key} is repeated`);
			valuesByKey.set(key, assignment[2]!);
		}
	}
	return valuesByKey;
}

const unit = suite('systemd unit');
const keys = parseUnit();
const service = (key: string): string | undefined => keys.get(`Service.${key}`);

unit('ExecStart is a valid command line', async () => {
	const [program, ...words] = service('ExecStart')!.split(' ');
	assert.is(program, '/usr/local/bin/svc');
	const { command, wordsAfterCommand } = scanCommandLine(words);
	assert.is(command, 'run');
	const run = await COMMANDS.find(({ name }) => name === command)!.load();
	assert.equal(parseArguments(run, wordsAfterCommand).normalizedWords, ['--config=/etc/svc/Configfile', '--']);
});

unit('a reload waits for the result, and a child process may report readiness', async () => {
	const [program, ...words] = service('ExecReload')!.split(' ');
	assert.is(program, '/usr/local/bin/svc');
	const { command, wordsAfterCommand } = scanCommandLine(words);
	const reload = await COMMANDS.find(({ name }) => name === command)!.load();
	assert.equal(parseArguments(reload, wordsAfterCommand).normalizedWords, ['--pid=$MAINPID', '--']);
	assert.is(service('RuntimeDirectory'), 'svc');
	assert.is(service('Type'), 'notify');
	assert.is(service('NotifyAccess'), 'all');
});

unit('a stop waits until the main process has ended', async () => {
	const [program, ...words] = service('ExecStop')!.split(' ');
	assert.is(program, '/usr/local/bin/svc');
	const { command, wordsAfterCommand } = scanCommandLine(words);
	const stop = await COMMANDS.find(({ name }) => name === command)!.load();
	assert.equal(parseArguments(stop, wordsAfterCommand).normalizedWords, [`--pid=\${MAINPID}`, '--']);
	// `$MAINPID` is empty if there is no main process.
	assert.equal(parseArguments(stop, ['--pid=']).normalizedWords, ['--pid=', '--']);
});

unit('the service may bind low ports and has no other privilege', () => {
	assert.is(service('User'), 'svc');
	assert.is(service('NoNewPrivileges'), 'yes');
	assert.is(service('CapabilityBoundingSet'), 'CAP_NET_BIND_SERVICE');
	assert.is(service('AmbientCapabilities'), 'CAP_NET_BIND_SERVICE');
	assert.is(service('ProtectSystem'), 'strict');
	assert.is(service('PrivateTmp'), 'yes');
	assert.is(service('MemoryDenyWriteExecute'), undefined);
	for (const folder of ['StateDirectory', 'LogsDirectory', 'RuntimeDirectory']) assert.is(service(folder), 'svc');
	assert.is(service('WorkingDirectory'), `/var/lib/${service('StateDirectory')}`);
});

unit('the service starts at boot, and the number of restarts is limited', () => {
	assert.is(keys.get('Install.WantedBy'), 'multi-user.target');
	assert.is(service('Restart'), 'on-failure');
	assert.ok(Number(keys.get('Unit.StartLimitBurst')) > 0);
	assert.ok(Number(keys.get('Unit.StartLimitIntervalSec')) > Number(service('RestartSec')) * 5);
});

unit.run();
