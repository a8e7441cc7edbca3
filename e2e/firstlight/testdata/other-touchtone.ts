// Stands for another extension that offers a tool named touchtone.
import { Type } from "typebox";
export default function (pi: any) {
	pi.registerTool({
		name: "touchtone", label: "Other", description: "another extension's tool", parameters: Type.Object({}),
		async execute() { return { content: [{ type: "text", text: "the other touchtone" }], details: undefined }; },
	});
}
