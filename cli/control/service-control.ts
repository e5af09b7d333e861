/** Controls the installed systemd unit through systemctl. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { CommandFailure } from '../command/command.ts';

export const SERVICE_ACTIONS = ['start', 'stop', 'restart', 'reload', 'status'] as const;

export type ServiceAction = (typeof SERVICE_ACTIONS)[number];

export const SYSTEMD_UNIT_NAME = 'svc';

/** A folder that exists while systemd is the init system (sd_booted(3)). */
const SYSTEMD_FOLDER = '/run/systemd/system';

/** The machine's features that this file uses; tests replace them. */
export interface ServiceMachine {
	readonly platform: string;
	/** True if systemd is the init system. */
	readonly hasSystemd: boolean;
	/** Runs a program attached to our terminal and resolves to its exit status; rejects if it cannot be started. */
	readonly run: (program: string, args: readonly string[]) => Promise<number>;
}

/** Returns the machine on which this process runs. */
export function thisMachine(): ServiceMachine {
	return { platform: process.platform, hasSystemd: existsSync(SYSTEMD_FOLDER), run: runProgram };
}

/**
 * Runs the action and resolves to the exit status of systemctl, which prints its own errors.
 * @throws {@link CommandFailure} on a machine without systemd
 */
export async function controlService(action: ServiceAction, machine: ServiceMachine): Promise<number> {
	if (machine.platform !== 'linux') {
		throw new CommandFailure('`svc service` requires Linux with systemd; run the server with `svc start`.');
	}
	if (!machine.hasSystemd) {
		throw new CommandFailure('systemd is not running on this machine; run the server with `svc start`.');
	}
	try {
		return await machine.run('systemctl', ['--no-pager', action, SYSTEMD_UNIT_NAME]);
	} catch (error) {
		throw new CommandFailure(`systemctl cannot be run: ${(error as NodeJS.ErrnoException).code}.`);
	}
}

function runProgram(program: string, args: readonly string[]): Promise<number> {
	return new Promise((resolve, reject) => {
		const child = spawn(program, args, { stdio: 'inherit', shell: false });
		child.once('error', reject);
		child.once('exit', (status, signal) => resolve(signal === null ? (status ?? 1) : 1));
	});
}
