/** Controls the installed systemd unit by way of systemctl. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { CommandFailure } from './command.ts';

/** What may be done with the unit. */
export const SERVICE_ACTIONS = ['start', 'stop', 'restart', 'reload', 'status'] as const;

/** One of {@link SERVICE_ACTIONS}. */
export type ServiceAction = (typeof SERVICE_ACTIONS)[number];

/** Name of the unit. */
export const UNIT = 'svc';

/** There while systemd runs the machine, as sd_booted(3) has it. */
const SYSTEMD_FOLDER = '/run/systemd/system';

/** The machine as this file sees it. */
export interface ServiceMachine {
	readonly platform: string;
	/** True while systemd runs the machine. */
	readonly hasSystemd: boolean;
	/** Runs a program with our terminal and resolves to its exit status; rejects when it cannot be started. */
	readonly run: (program: string, args: readonly string[]) => Promise<number>;
}

/** The machine that this process runs on. */
export function thisMachine(): ServiceMachine {
	return { platform: process.platform, hasSystemd: existsSync(SYSTEMD_FOLDER), run: runProgram };
}

/**
 * Does it and resolves to the exit status of systemctl, which prints what goes wrong by itself. Throws
 * {@link CommandFailure} on a machine without systemd.
 */
export async function controlService(action: ServiceAction, machine: ServiceMachine): Promise<number> {
	if (machine.platform !== 'linux') {
		throw new CommandFailure('`svc service` works on Linux with systemd only; run the server with `svc start`.');
	}
	if (!machine.hasSystemd) {
		throw new CommandFailure('systemd does not run this machine; run the server with `svc start`.');
	}
	try {
		return await machine.run('systemctl', ['--no-pager', action, UNIT]);
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
