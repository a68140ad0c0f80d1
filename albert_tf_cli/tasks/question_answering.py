"""Questions on texts that contain the answers: files of the SQuAD form."""

import warnings

from albert_tf_cli.tasks.task import Examples, Report, Task
from albert_tf_lite.errors import AlbertError


class QuestionAnswering(Task):
    """A question and its context; scored by the script of SQuAD or CMRC 2018."""

    name = "question-answering"

    def read(self, path, columns, known=None):
        from albert_tf.data import read_squad

        found = read_squad(path)
        data = found.for_training()
        notes = {
            "answers had a wrong answer_start, which was corrected": data.moved,
            "answers are not in their context": data.absent,
            "questions have no valid answer and are skipped": data.skipped,
        }
        counts = [f"{count} {note}" for note, count in notes.items() if count]
        if counts:
            warnings.warn(f"{path}: {'; '.join(counts)}.", stacklevel=2)
        if not len(data):
            raise AlbertError(f"{path} has no question with its answer in the context.")
        return Examples(data.x, data.answers)

    def tune(self, model, dev, batch_size):
        if not all(dev.y):
            kind = self._scoring_script(dev)
            model.tune_null_threshold(dev.x, dev.y, kind, batch_size)

    def scores(self, model, examples, batch_size):
        from albert_tf.evaluation import answer_scores

        found = model.predict(examples.x, batch_size=batch_size, verbose=0)
        predicted = [answer["answer"] for answer in found]
        truth = [[text for _, text in answers] for answers in examples.y]
        return answer_scores(predicted, truth, self._scoring_script(examples))

    def report(self, model, examples, batch_size):
        scores = Report.of_scores(self.scores(model, examples, batch_size))
        names = {"cmrc": "CMRC 2018", "squad": "SQuAD"}
        script = names[self._scoring_script(examples)]
        return Report(
            scores.values, [f"Script of {script}, in percent:", *scores.shown]
        )

    def _scoring_script(self, examples):
        from albert_tf.evaluation import kind_of_answers

        # A sample of the contexts is enough to recognise Chinese.
        return kind_of_answers(examples.x[1][:100])
