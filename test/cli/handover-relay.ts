/** A program that runs the server between a predecessor and its successor, so that a test can act at a certain message. */
import { SVC } from '../harness.ts';

/**
 * Returns a program that runs the server and passes handover messages on in both directions. When a message has a type or step that
 * `actions` names, the program runs this action instead. In an action, `pass()` passes the `message` on, which the action may have
 * changed, and `predecessor` is the PID of the predecessor.
 */
export function relayProgram(actions: { readonly [typeOrStep: string]: string }): string {
	const cases = Object.entries(actions).map(
		([at, action]) => `${JSON.stringify(at)}: (pass, message) => { ${action} }`,
	);
	return `#!${process.execPath}
const { spawn } = require('node:child_process');
const { closeSync, existsSync, fstatSync, readdirSync, writeFileSync } = require('node:fs');
const { Socket } = require('node:net');
const inherited = readdirSync('/proc/self/fd').map(Number).filter(fd => fd > 3).filter(fd => {
	try { return fstatSync(fd).isSocket() || fstatSync(fd).isFIFO(); } catch { return false; }
});
const stdio = ['inherit', 'inherit', 'inherit', 'pipe'];
for (let fd = 4; fd <= Math.max(3, ...inherited); fd++) stdio.push(inherited.includes(fd) ? fd : 'ignore');
const predecessor = process.ppid;
const actions = { ${cases.join(', ')} };
const child = spawn(${JSON.stringify(SVC)}, process.argv.slice(2), { stdio });
child.on('exit', status => process.exit(status ?? 99));
// Otherwise, sockets that the server closes would stay open. The pipes may be Node's own.
for (const fd of inherited) if (fstatSync(fd).isSocket()) closeSync(fd);
const up = new Socket({ fd: 3 });
const down = child.stdio[3];
const connect = (from, to) => {
	let rest = '';
	from.setEncoding('utf8').on('data', text => {
		const lines = (rest + text).split('\\n');
		rest = lines.pop();
		for (const line of lines) {
			const message = JSON.parse(line);
			const pass = () => to.write(JSON.stringify(message) + '\\n');
			const action = actions[message.step] ?? actions[message.type];
			if (action) action(pass, message); else pass();
		}
	});
	from.on('error', () => {});
	from.on('close', () => to.destroy());
};
connect(up, down);
connect(down, up);
`;
}
