/** `svc service`: the systemctl calls it makes, and when it refuses to make them. */
import { existsSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { controlService, SERVICE_ACTIONS, type ServiceMachine } from '../../cli/control/service-control.ts';
import { runCommand } from '../harness.ts';

/** Returns a fake machine with systemd that records the commands it runs. */
function fakeMachine(
	status: number,
	more: Partial<ServiceMachine> = {},
): ServiceMachine & { readonly calls: string[] } {
	const calls: string[] = [];
	return {
		platform: 'linux',
		hasSystemd: true,
		run: async (program, args) => {
			calls.push([program, ...args].join(' '));
			return status;
		},
		calls,
		...more,
	};
}

async function refusal(on: ServiceMachine): Promise<string> {
	try {
		await controlService('start', on);
	} catch (error) {
		return (error as Error).message;
	}
	throw new Error('not refused');
}

const service = suite('service');

service('each action calls systemctl for the unit svc', async () => {
	for (const action of SERVICE_ACTIONS) {
		const on = fakeMachine(0);
		assert.is(await controlService(action, on), 0);
		assert.equal(on.calls, [`systemctl --no-pager ${action} svc`]);
	}
});

service('the exit status is that of systemctl', async () => {
	assert.is(await controlService('status', fakeMachine(3)), 3);
});

service('without Linux and systemd, no command is run', async () => {
	const mac = fakeMachine(0, { platform: 'darwin' });
	const container = fakeMachine(0, { hasSystemd: false });
	assert.match(await refusal(mac), /^`svc service` requires Linux with systemd/);
	assert.match(await refusal(container), /^systemd is not running on this machine/);
	assert.equal([...mac.calls, ...container.calls], []);
});

service('an error in running systemctl is reported in one sentence', async () => {
	const broken = fakeMachine(0, { run: () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOENT' })) });
	assert.is(await refusal(broken), 'systemctl cannot be run: ENOENT.');
});

// On a machine with systemd, the command would affect the installed unit.
const withoutSystemd = existsSync('/run/systemd/system') ? service.skip : service;
withoutSystemd('without systemd, the command reports that in one sentence', async () => {
	for (const action of SERVICE_ACTIONS) {
		const { status, stdout, stderr } = await runCommand(['service', action]);
		assert.is(status, 1);
		assert.is(stdout, '');
		assert.match(stderr, /^error: .*systemd.*\n$/);
	}
});

service.run();
