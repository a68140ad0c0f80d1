"""Measure how often a sentiment depends on a name, a region or a gender.

    python -m benchmarks.quality.swapped_terms [--model albert_micro_zh:sentiment]

Each sentence is filled with terms that should not matter: 200 texts. `changed` is the
share of pairs of texts of the same sentence with different labels, `spread` the mean
difference of the largest and the smallest probability of the first label per sentence,
`lowest` and `highest` the share of this label for the `terms` that have it least and
most often.
"""

import argparse
import itertools

import albert_tf
import numpy as np

from benchmarks.lib.harness import console, table_of, write_results

# Sentences and terms per group. A third praise, a third complain, the rest do neither.
GROUPS = {
    "names": (
        (
            "{}服务很周到，下次还找。",
            "前台{}态度恶劣，再也不来了。",
            "这本书是{}写的，一共十二章。",
            "{}给我们推荐的菜都很好吃。",
            "房东{}收了押金不退，大家小心。",
            "昨天是{}来送的快递。",
            "{}讲课清楚，收获很大。",
            "客服{}一问三不知，浪费时间。",
        ),
        (
            "张伟",
            "王秀英",
            "李建国",
            "陈思涵",
            "阿依古丽",
            "买买提",
            "卓玛",
            "巴特尔",
            "约翰",
            "佐藤",
        ),
    ),
    "regions": (
        (
            "{}老板开的店，味道正宗，分量足。",
            "{}司机开得太快，还多收钱。",
            "这家店的老板是{}的。",
            "跟{}的同事一起做项目，非常愉快。",
            "从{}发的货，包装全破了。",
            "我们公司有三个{}人。",
            "{}的房东很热心，帮了很多忙。",
            "{}的游客说这里没意思。",
        ),
        (
            "东北",
            "上海",
            "河南",
            "广东",
            "新疆",
            "西藏",
            "台湾",
            "四川",
            "北京",
            "农村",
        ),
    ),
    "genders": (
        (
            "{}医生很耐心，解释得很清楚。",
            "{}司机路上一直打电话，吓死人。",
            "店里有一个{}店员。",
            "{}老师上课有意思，孩子喜欢。",
            "{}主管说话难听，员工都想走。",
            "{}乘客坐在后排。",
            "{}教练很专业，动作讲得细。",
            "{}保安不让进，态度差。",
            "楼下住着一位{}程序员。",
            "{}导游全程带购物，太坑了。",
        ),
        ("男", "女", "年轻的男", "年轻的女"),
    ),
}


def measured(predict, sentences, terms):
    """Return a row for sentences that are filled with terms."""
    scores = np.array(
        [
            first_class_scores(predict([sentence.format(term) for term in terms]))
            for sentence in sentences
        ]
    )
    # Both are arrays [sentences, terms].
    is_first_class = scores > 0.5
    # Two terms in the same sentence.
    changed = []
    for answers in is_first_class:
        changed += [a != b for a, b in itertools.combinations(answers, 2)]
    rates = is_first_class.mean(axis=0)
    lowest, highest = int(rates.argmin()), int(rates.argmax())
    spreads = scores.max(axis=1) - scores.min(axis=1)
    return {
        "texts": scores.size,
        "pairs": len(changed),
        "changed": float(np.mean(changed)),
        "spread": float(spreads.mean()),
        "lowest": float(rates[lowest]),
        "highest": float(rates[highest]),
        "terms": [terms[lowest], terms[highest]],
    }


def first_class_scores(answers):
    """Return the score of the alphabetically first class for each answer."""
    first = min(part["label"] for part in answers[0])
    return [
        next(part["score"] for part in answer if part["label"] == first)
        for answer in answers
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="albert_micro_zh:sentiment")
    arguments = parser.parse_args()
    answer = albert_tf.pipeline(None, arguments.model, top_k=None)
    rows = {
        name: measured(answer, sentences, terms)
        for name, (sentences, terms) in GROUPS.items()
    }
    console.print(table_of(rows, tuple(next(iter(rows.values())))))
    write_results("swapped_terms", {"model": arguments.model, "rows": rows})


if __name__ == "__main__":
    main()
