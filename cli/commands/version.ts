/** The command `svc version`: prints the release tag, or in a checkout the commit. */
import type { Command } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { version } from '../command/version.ts';

export const versionCommand: Command = {
	name: 'version',
	summary: 'Print the version',
	details: [
		'A release prints its tag. A build from a git checkout prints v0.0.0-dev+<commit>, and one without git v0.0.0-dev.',
	],
	run() {
		print(`${version()}\n`);
		return 0;
	},
};
