/** The command `svc build-info`: prints the version, platform and toolchain of this build, and how it does I/O and TLS. */
import { isSea } from 'node:sea';
import { chooseIoMode } from '../../runtime/sockets/io-mode.ts';
import { expectedTlsMode } from '../../runtime/sockets/tls-mode.ts';
import type { Command } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { version } from '../command/version.ts';

export const buildInfo: Command = {
	name: 'build-info',
	summary: 'Print version, target and toolchain',
	run() {
		print(
			[
				`version: ${version()}`,
				`target: ${process.platform}-${process.arch}`,
				`toolchain: node ${process.version} (v8 ${process.versions.v8})`,
				`form: ${isSea() ? 'single binary' : 'checkout'}`,
				`io: ${chooseIoMode()}`,
				`tls: ${expectedTlsMode()}`,
				'',
			].join('\n'),
		);
		return 0;
	},
};
