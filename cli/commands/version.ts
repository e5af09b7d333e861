/** `svc version`. */
import type { Command } from '../command.ts';
import { print } from '../terminal.ts';
import { version } from '../version.ts';

/** Prints the release tag, or what stands for it in a checkout. */
export const versionCommand: Command = {
	name: 'version',
	summary: 'Print the version',
	details: [
		'A release prints its tag. A build from a git checkout prints v0.0.0-dev+<commit>, and v0.0.0-dev where there is no git.',
	],
	run() {
		print(`${version()}\n`);
		return 0;
	},
};
